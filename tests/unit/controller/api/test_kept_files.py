"""Files with secrets are read again when they have changed, and one that went wrong is not used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.controller.api.kept_files import secret_file

OLD, NEW = b"the old secret, 32 characters ..", b"the new secret, 32 characters ..!"
RULE = "it must be for its owner alone: chmod 600"


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    path.chmod(0o600)
    return path


def test_changed_file_is_read_again_and_one_that_went_wrong_is_told_and_not_used(
    tmp_path: Path,
) -> None:
    now = 0.0
    path = written(tmp_path / "secret", OLD)
    kept = secret_file(path, clock=lambda: now)
    assert kept is not None
    assert kept() == (OLD,)
    written(path, OLD, NEW)
    assert kept() == (OLD,), "it is looked at once a second"
    for lines, holds, trouble in (
        ((OLD, NEW), (OLD, NEW), False),
        ((NEW, b"short"), (OLD, NEW), True),
        ((NEW,), (NEW,), False),
    ):
        now += 1.0
        written(path, *lines)
        assert (kept(), kept.trouble is not None) == (holds, trouble)
    assert kept.generation == 2
    path.chmod(0o644)
    now += 1.0
    assert kept() == (NEW,)
    assert kept.trouble == f"what was read before is used on: shared_secret_file {path} has mode 0644: {RULE} {path}"


@pytest.mark.timeout(60)  # whoever waits for a pipe's other end does so for ever
@pytest.mark.parametrize(
    "becomes", [lambda at: os.mkfifo(at, 0o600), lambda at: at.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
def test_file_that_became_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path, becomes: Callable[[Path], None]) -> None:
    now = 0.0
    path = written(tmp_path / "secret", OLD)
    kept = secret_file(path, clock=lambda: now)
    assert kept is not None
    path.unlink()
    becomes(path)
    now += 1.0
    assert kept() == (OLD,)
    assert kept.trouble is not None
    assert "is no regular file" in kept.trouble
    path.unlink()
    written(path, NEW)
    now += 1.0
    assert kept() == (NEW,)
