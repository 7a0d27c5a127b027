"""Profiles whose model a make target prepares: overrides that take the config.json which is shipped of it."""

from __future__ import annotations

from r1pipe.resources import configs_dir

AT_HAND = {
    "smollm2-135m": [f"base_model.path={configs_dir() / 'models' / 'HuggingFaceTB--SmolLM2-135M-Instruct'}"],
}
