"""`quorate bearer-tokens`: a token is printed once, the file has its hash, and what is wrong changes no file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quorate.controller.identity.bearer_tokens import BearerTokens, InvalidTokens
from quorate.controller.identity.identity import Identity
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.cli.access.bearer_tokens import app


def run(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, (*arguments, "--file", str(file)))


def test_token_is_shown_once_and_known_by_the_file_until_it_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    first, second, other = (run(file, "add", who).stdout.strip() for who in ("User:ana", "User:ana", "Broker:11,12"))
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]
    assert len({first, second, other}) == 3
    assert not any(token in text for token in (first, second, other))
    assert min(len(first), len(second)) >= 32
    assert BearerTokens.parse(text).find(second) == Identity("User:ana", "token")
    assert [line.split()[0] for line in run(file, "list").stdout.splitlines()] == [
        "User:ana",
        "User:ana",
        "Broker:11,12",
    ]
    assert run(file, "remove", "User:ana").stdout == "User:ana had 2 tokens\n"
    left = BearerTokens.parse(file.read_text())
    assert (len(left), left.find(first), left.find(other) is not None) == (1, None, True)


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (("add", "ana"), InvalidTokens, "Type:name"),
        (("add", "Controller:1"), InvalidTokens, "no token makes a controller"),
        (("add", "Broker:x"), InvalidTokens, "ids of brokers"),
        (("remove", "User:ben"), InvalidTokens, "User:ben has no token"),
    ],
)
def test_what_cannot_be_done_changes_nothing_and_says_why(
    tmp_path: Path, arguments: tuple[str, ...], kind: type[QuorateError], says: str
) -> None:
    file = tmp_path / "tokens"
    assert run(file, "add", "User:ana").exit_code == 0
    before = file.read_bytes()
    refused = run(file, *arguments)
    assert isinstance(refused.exception, kind)
    assert says in str(refused.exception)
    assert file.read_bytes() == before


def test_file_that_others_may_read_or_with_a_wrong_line_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("rubbish\n")
    for mode, says in ((0o644, "has mode 0644"), (0o600, "line 1 is not")):
        file.chmod(mode)
        refused = run(file, "add", "User:ana")
        assert isinstance(refused.exception, InvalidSettings)
        assert says in str(refused.exception)
    assert file.read_text() == "rubbish\n"
