"""Where the shipped profiles and data lie: inside the wheel, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(packaged: str, checkout: str) -> Path:
    inside = _PACKAGE / packaged
    return inside if inside.is_dir() else _PACKAGE.parent / checkout


def configs_dir() -> Path:
    """The shipped profiles, accelerate files and model fixtures."""
    return _folder("_configs", "configs")


def data_dir() -> Path:
    """The embedded model."""
    return _folder("_data", "data")
