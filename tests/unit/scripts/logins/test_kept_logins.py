"""The file of the logins that are kept: for its owner alone, bounded, and refused where it is not what was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.logins.kept_logins import LOGINS_MAX, KeptLogin, drop, find_kept, keep, logins_file

A, B, C = "https://a:1", "https://b:1", "https://c:1"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def kept(*urls: str, user: str = "ana") -> KeptLogin:
    return KeptLogin(controllers=urls, user=user, principal=f"User:{user}", token="t" * 43, ends_at_ms=1_000)


def test_token_is_for_the_controllers_that_were_named_and_the_newest_login_there_counts() -> None:
    keep(kept(A, B))
    keep(kept(C, user="ben"))
    assert [one and one.user for one in (find_kept([A], 0), find_kept([B, A], 0), find_kept([C], 0))] == [
        "ana",
        "ana",
        "ben",
    ]
    assert find_kept([A, C], 0) is find_kept([], 0) is None
    keep(kept(B, C, user="eve"))
    assert find_kept([A], 0) is None
    assert [one.user for one in drop([C])] == ["eve"]
    assert drop(None) == []
    assert "t" * 43 not in repr(kept(A))


def test_so_many_are_kept_and_the_oldest_goes() -> None:
    for number in range(LOGINS_MAX + 1):
        keep(kept(f"https://c{number}:1"))
    assert find_kept(["https://c0:1"], 0) is None
    assert find_kept(["https://c1:1"], 0) is not None


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        ('{"logins": []}', 0o644, "has mode 0644"),
        ("{", 0o600, "remove it, and log in again"),
        ('{"logins": [{"token": "secret"}]}', 0o600, "remove it, and log in again"),
        (" " * (1024 * 1024 + 1), 0o600, "has more than 1048576 bytes"),
    ],
)
def test_file_that_others_may_use_or_that_is_another_is_refused(content: str, mode: int, says: str) -> None:
    file = logins_file()
    file.parent.mkdir()
    file.touch()
    file.chmod(mode)
    file.write_text(content)
    for use in (lambda: find_kept([A], 0), lambda: keep(kept(A)), lambda: drop(None)):
        with pytest.raises(InvalidSettings, match=says) as refused:
            use()
        assert "secret" not in str(refused.value)
    assert file.read_text() == content


def test_directory_that_is_not_named_from_the_root_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("", "state"):
        monkeypatch.setenv("XDG_STATE_HOME", named)
        assert logins_file() == tmp_path / ".local" / "state" / "quorate" / "logins.json"


def test_whoever_has_no_home_is_told_so_when_a_login_is_to_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "expanduser", _no_home)
    assert find_kept([A], 0) is None
    with pytest.raises(InvalidSettings, match="set XDG_STATE_HOME"):
        keep(kept(A))


def _no_home(path: Path) -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_file_is_what_a_reader_of_json_expects() -> None:
    keep(kept(A))
    assert json.loads(logins_file().read_text())["logins"][0]["controllers"] == [A]
