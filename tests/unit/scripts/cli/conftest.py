"""What the tests of commands share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory and an environment that name no cluster, context or login."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("QUORATE_")]:
        monkeypatch.delenv(name)
