"""`--dir`, `--context` and contexts, in all commands that ask a cluster."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from quorate.scripts.cli.__main__ import _COMMANDS
from quorate.scripts.logins.kept_contexts import CONTEXTS_MAX, KeptContext, KeptContexts, contexts_file, write_contexts
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.places.options import with_places
from tests.integration.commands import Ended, alone

#: Whose `--controllers` is something else than whom to ask.
OF_THEIR_OWN = (
    "context context add",
    "up",
    "broker",
    "snapshot snapshot restore",
    "recover recover survey",
    "recover recover plan",
)


pytestmark = pytest.mark.usefixtures("bare_home")


def leaves(command: Any, name: str) -> Iterator[tuple[str, list[Any]]]:
    """Commands with their parameters."""
    below = getattr(command, "commands", {})
    for part, one in below.items():
        yield from leaves(one, f"{name} {part}")
    if not below:
        yield name, command.params


@pytest.mark.parametrize("name", _COMMANDS)
def test_commands_that_ask_controllers_know_them_by_name_and_directory_too(name: str) -> None:
    app = typer.Typer()
    _COMMANDS[name].add(app)
    for leaf, parameters in leaves(with_places(typer.main.get_command(app)), name):
        options = {option for one in parameters for option in one.opts}
        if "--controllers" in options:
            has_both = {"--dir", "--context"} <= options
            assert has_both == (leaf not in OF_THEIR_OWN), leaf
        called = [one.name for one in parameters]
        assert len(set(called)) == len(called), f"{leaf}: two parameters of one name get one value"


async def told(*arguments: str, code: int = exit_codes.DONE) -> Ended:
    ended = await alone(*arguments)
    assert ended.code == code, ended
    return ended


async def test_context_in_use_is_asked_until_another_cluster_is_named() -> None:
    await told("context", "add", "prod", "--controllers", "127.0.0.1:1", "--use")
    await told("context", "add", "other", "--controllers", "127.0.0.1:2,127.0.0.1:3")
    said = [
        (await told("topics", "list", *more, code=exit_codes.UNREACHABLE)).err
        for more in ((), ("--context", "other"), ("--controllers", "127.0.0.1:4"))
    ]
    assert ["127.0.0.1:1" in said[0], "127.0.0.1:3" in said[1], "127.0.0.1:4" in said[2]] == [True] * 3
    here = await told("topics", "list", "--dir", "none", code=exit_codes.USAGE)
    assert "no local cluster in ./none" in here.said
    await told("context", "use", "--none")
    assert "no local cluster in ./var" in (await told("topics", "list", code=exit_codes.USAGE)).said
    assert not [name for name in os.environ if name.startswith("QUORATE_")], "it was for one command each"


@pytest.mark.parametrize("command", [("node", "list"), ("node", "kill", "broker-1"), ("recover", "survey")])
async def test_commands_on_local_processes_are_of_the_directory_of_the_context_in_use(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    """And of no other cluster, that lies in ./var."""
    twin = tmp_path / "twin"
    twin.mkdir()
    await told("context", "add", "twin", "--dir", str(twin), "--use")
    assert str(twin) in (await alone(*command)).said
    assert str(twin) not in (await alone(*command, "--dir", str(tmp_path / "named"))).said
    await told("context", "add", "prod", "--controllers", "127.0.0.1:1", "--use")
    assert str(twin) not in (await alone(*command)).said
    assert not [name for name in os.environ if name.startswith("QUORATE_")], "it was for one command each"


async def test_contexts_are_listed_used_and_forgotten(tmp_path: Path) -> None:
    assert (await told("context", "list")).out == "There are no contexts.\n"
    token = tmp_path / "token"
    token.touch()
    await told("context", "add", "prod", "--controllers", "c1:1", "--secret-file", "token")
    await told("context", "add", "twin", "--dir", ".")
    await told("context", "use", "twin")
    listed = await told("context", "list")
    assert listed.cells == [
        ["NAME", "CLUSTER", "WHO"], ["prod", "c1:1", str(token)], ["*", "twin", str(tmp_path), "-"],
    ]  # fmt: skip
    found = json.loads((await told("context", "list", "--json")).out)
    assert (found["current"], [one["name"] for one in found["contexts"]]) == ("twin", ["prod", "twin"])
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(contexts_file().parent.stat().st_mode) == 0o700
    assert "none is in use" in (await told("context", "remove", "twin")).out
    assert "there are: prod" in (await told("context", "remove", "twin", code=exit_codes.REFUSED)).err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("bad name", "--controllers", "c1:1"), exit_codes.USAGE, "name: it must be letters, digits"),
        (("prod",), exit_codes.USAGE, "say where the cluster is"),
        (("prod", "--controllers", "c1:1", "--dir", "."), exit_codes.USAGE, "say where the cluster is"),
        (("prod", "--controllers", "nowhere"), exit_codes.REFUSED, "names no controller"),
        (("prod", "--dir", "none"), exit_codes.USAGE, "none: there is no such file"),
        (("prod", "--dir", ".", "--cert-file", "."), exit_codes.USAGE, "belong together"),
        (("prod", "--dir", ".", "--user", "ana"), exit_codes.USAGE, "belong together"),
        (
            ("prod", "--dir", ".", "--secret-file", ".", "--user", "ana", "--password-file", "."),
            exit_codes.USAGE,
            "who asks is one thing",
        ),
        (("there", "--dir", "."), exit_codes.REFUSED, "there is a context there already"),
        (("prod", "--dir", ".", "--user", "a" * 5_000, "--password-file", "."), exit_codes.USAGE, "at most 4096"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(arguments: tuple[str, ...], code: int, said: str) -> None:
    await told("context", "add", "there", "--dir", ".")
    before = contexts_file().read_bytes()
    assert said in (await told("context", "add", *arguments, code=code)).said
    assert contexts_file().read_bytes() == before


async def test_file_that_is_none_of_contexts_or_is_for_others_is_refused() -> None:
    await told("context", "add", "prod", "--controllers", "c1:1", "--use")
    contexts_file().chmod(0o644)
    assert "must be for its owner alone" in (await told("topics", "list", code=exit_codes.REFUSED)).err
    contexts_file().chmod(0o600)
    contexts_file().write_text("{}[", encoding="utf-8")
    assert "does not hold what quorate context keeps" in (await told("context", "list", code=exit_codes.REFUSED)).err


async def test_there_are_so_many_contexts_at_most() -> None:
    write_contexts(KeptContexts(contexts=tuple(KeptContext(name=f"c{n}", directory="/") for n in range(CONTEXTS_MAX))))
    await told("context", "add", "c0", "--dir", ".", "--replace")
    assert "the most" in (await told("context", "add", "more", "--dir", ".", code=exit_codes.REFUSED)).err
