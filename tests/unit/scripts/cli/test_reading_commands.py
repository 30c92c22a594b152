"""Every command that reads can be asked about the past, or has its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from quorate.scripts.cli.__main__ import _COMMANDS, make_app

#: What changes something, or runs something.
WRITES = {
    "acls add", "acls remove", "apply", "bearer-tokens add", "bearer-tokens remove",
    "broker", "brokers decommission", "brokers unregister", "certs init", "certs issue", "certs renew", "certs retire",
    "configs alter", "configs replace", "context add", "context remove", "context use", "controller",
    "drill list", "drill run", "elect", "features downgrade", "features upgrade", "format directory", "format settings",
    "labels remove", "labels set", "login", "logout",
    "node cordon-directory", "node fail-directory", "node kill", "node pause", "node resume", "node slow-down",
    "node start", "node stop", "quotas remove", "quotas set",
    "reassign apply", "reassign cancel", "recover apply", "recover plan", "recover rejoin", "recover survey",
    "recover verify",
    "deployment write",
    "snapshot take", "tokens create", "tokens expire", "tokens renew", "topics add-partitions", "topics create",
    "topics delete", "undo", "up", "users remove", "users set",
    "watching export",
}  # fmt: skip
#: What reads and has no `--at`, and why.
EXCEPTIONS = {
    "audit reads": "what changed nothing is in no state",
    "audit verify": "all of it is to be whole",
    "backup": "what is kept is the newest state; an older one is had of the files that were kept then",
    "bearer-tokens list": "a file beside the log",
    "brokers feed": "who reads now, and how far they are: nobody writes that down",
    "can-stop controller": "no log says how the quorum was",
    "certs show": "files that no log knows of",
    "completion": "a program for a shell",
    "context list": "a file beside all logs",
    "deployment list": "files that come with the program",
    "history": "all moments, one after the other",
    "incidents": "all moments, one after the other, up to --until",
    "image diff": "each side names its own moment, behind an @",
    "manual export": "made of the commands alone",
    "log verify": "all of a log is to be whole",
    "node list": "processes as they run now",
    "page": "all moments of a log: the page has a slider for them",
    "reassign plan": "a plan is for the cluster as it is",
    "reassign verify": "whether a plan is carried out now",
    "refusals": "what changed nothing is in no state",
    "snapshot list": "files, not a state",
    "snapshot save": "what is kept is the newest state; an older one is had of the files that were kept then",
    "snapshot show": "a checkpoint is the state at one offset",
    "snapshot verify": "files, not a state",
    "timeline": "all moments, one after the other, up to --until",
    "topics deletions": "what brokers still have now",
}
#: Jobs over whole logs, with moments of their own.
OTHER_PROGRAMS = ("pipeline",)


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands below one, by their words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    else:
        for word, part in inner.items():
            yield from leaves(part, f"{name} {word}".strip())


def leaves_of_all() -> Iterator[tuple[str, Any]]:
    """Every command that there is, by its words."""
    for word in _COMMANDS:
        yield from leaves(get_command(make_app([word])), "")


def commands() -> Iterator[tuple[str, Any]]:
    return (one for one in leaves_of_all() if one[0].split()[0] not in OTHER_PROGRAMS)


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    """Options of each command."""
    return {name: {text for parameter in command.params for text in parameter.opts} for name, command in commands()}


def test_every_command_that_reads_takes_a_moment_or_has_its_reason(options: dict[str, set[str]]) -> None:
    without = {name for name, opts in options.items() if "--at" not in opts}

    assert without - WRITES == set(EXCEPTIONS)


def test_lists_name_commands_that_are_there(options: dict[str, set[str]]) -> None:
    assert (WRITES | set(EXCEPTIONS)) - set(options) == set()


def test_whoever_shows_a_cluster_at_a_moment_shows_it_of_files_too(options: dict[str, set[str]]) -> None:
    live = {name for name, opts in options.items() if {"--at", "--controllers"} <= opts} - WRITES

    assert {name for name in live if "--from" not in options[name]} == set()
    assert {"status", "quorum describe", "topics list", "cluster describe"} <= live
