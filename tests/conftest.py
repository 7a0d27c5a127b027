"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

# The same examples every time: a suite that fails by chance is not believed. To look for new ones:
# pytest --hypothesis-profile=default
settings.register_profile("same", derandomize=True)
settings.load_profile("same")
