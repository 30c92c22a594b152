"""Files with secrets: whose they must be, and what may be in them."""

import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import read_secret, read_secrets

OLD, NEW = b"the old secret, 32 characters ..", b"the new secret, 32 characters ..!"


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    path.chmod(0o600)
    return path


def test_first_line_is_shown_and_both_are_believed(tmp_path: Path) -> None:
    path = written(tmp_path / "secret", NEW, b"", b"  " + OLD + b"\r")
    assert (read_secret(path), read_secrets(path)) == (NEW, (NEW, OLD))


@pytest.mark.parametrize("lines", [(OLD, NEW, OLD), (OLD, b"short"), ()], ids=["three", "a short one", "none"])
def test_other_numbers_of_secrets_and_half_a_secret_are_refused(tmp_path: Path, lines: tuple[bytes, ...]) -> None:
    with pytest.raises(InvalidSettings, match="or two such lines while one replaces the other"):
        read_secrets(written(tmp_path / "secret", *lines))


def test_secret_that_no_header_can_carry_is_refused(tmp_path: Path) -> None:
    """As another settings file, named by mistake."""
    path = tmp_path / "controller-1.toml"
    path.write_text("node_id = 1\ndirectory = '/var/lib/quorate/controller-1'\n", encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(InvalidSettings, match="one line of at least 32 printable ASCII"):
        read_secret(path)


def test_secret_file_that_is_short_or_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    with pytest.raises(InvalidSettings, match="cannot be read"):
        read_secret(path)
    path.write_text("short\n", encoding="ascii")
    path.chmod(0o600)
    with pytest.raises(InvalidSettings, match="at least 32"):
        read_secret(path)
    path.write_text("0123456789abcdef" * 2 + "\n", encoding="ascii")
    assert read_secret(path) == b"0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("mode", "owner", "user", "is_taken"),
    [
        (0o600, 1000, 1000, True),
        (0o400, 1000, 1000, True),
        (0o640, 1000, 1000, False),
        (0o604, 1000, 1000, False),
        (0o644, 0, 0, False),
        (0o640, 0, 0, False),
        (0o640, 0, 1000, True),
        (0o440, 0, 1000, True),
        (0o660, 0, 1000, False),
        (0o644, 0, 1000, False),
    ],
)
def test_secret_file_that_others_may_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, user: int, *, is_taken: bool
) -> None:
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef" * 2, encoding="ascii")
    real = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, owner, 32, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda number: real)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if is_taken:
        assert read_secret(path) == b"0123456789abcdef" * 2
        return
    with pytest.raises(InvalidSettings) as refused:
        read_secret(path)
    rule = f"it must be for its owner alone: chmod 600 {path}"
    assert str(refused.value) == f"shared_secret_file {path} has mode {mode:04o}: {rule}"


def test_secret_file_is_looked_at_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef" * 2, encoding="ascii")
    for mode, is_taken in ((0o644, False), (0o600, True)):
        path.chmod(mode)
        with nullcontext() if is_taken else pytest.raises(InvalidSettings, match=f"has mode {mode:04o}"):
            read_secret(path)
