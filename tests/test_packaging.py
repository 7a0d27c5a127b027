"""The wheel, from an empty directory; and a foreign `stages/` that must not stand in for ours."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True
    )
    site = folder / "site"
    zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(site)
    return site


def run(site: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "r1pipe", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(site)},
    )  # fmt: skip


def test_the_wheel_holds_profiles_and_the_model(wheel: Path, tmp_path: Path) -> None:
    assert (wheel / "r1pipe" / "_data" / "tiny-base" / "model.safetensors").is_file()
    listed = run(wheel, tmp_path, "config", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert '"r1-paper"' in listed.stdout
    done = run(wheel, tmp_path, "run-stage", "base", "--profile", "smoke", "--set", "base.evaluate=false")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "runs").glob("smoke-full/base/*/manifest.json"))
    assert [p.name for p in tmp_path.iterdir()] == ["runs"], "nothing is written outside the runs folder"


def test_a_foreign_stages_folder_is_named(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "__init__.py").touch()
    (tmp_path / "stages" / "base_model.py").write_text("NAME = 'foreign'\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from r1pipe.cli.app import dispatch; sys.exit(dispatch(['status', '--profile', 'smoke']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(wheel), "COLUMNS": "300"},
    )  # fmt: skip
    assert done.returncode == 2
    assert str(tmp_path / "stages" / "base_model.py") in done.stderr
    assert str(wheel) in done.stderr
