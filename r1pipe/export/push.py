"""To the hub, through huggingface_hub; private unless it is said otherwise."""

from __future__ import annotations

import re
from pathlib import Path

from r1pipe.errors import UserError


def check(repo: str) -> None:
    """Before anything is written: is it a repository's name?"""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", repo):
        raise UserError(f'--push "{repo}" is no repository', hint="--push owner/name")


def upload(folder: Path, repo: str, *, public: bool) -> str:
    """Makes the repository where it is not there, and uploads the folder in one commit. Returns its address."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
    )

    api = HfApi()
    try:
        api.create_repo(repo, repo_type="model", private=not public, exist_ok=True)
        done = api.upload_folder(folder_path=folder, repo_id=repo, commit_message="r1pipe export")
    except (LocalTokenNotFoundError, HFValidationError, HfHubHTTPError, OfflineModeIsEnabled, OSError) as error:
        first = str(error).strip().split("\n")[0][:300]
        raise UserError(
            f"{repo} could not be pushed: {first or type(error).__name__}; the export itself is whole: {folder}",
            hint="log in (hf auth login, or HF_TOKEN), check the name and the network, then push again with --force",
        ) from error
    return str(done.commit_url)
