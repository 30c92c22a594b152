"""What deployment files say, held against the program: command lines that it takes, settings that it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer.main

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal.places.options import with_places
from tests.architecture.source_tree import ROOT

_PREFIXES = {"QUORATE_CONTROLLER_": "## Controller", "QUORATE_BROKER_": "## Broker"}


def parsed(arguments: Sequence[str]) -> dict[str, Any]:
    """The parameters of the command that these arguments call; fails as the program does where they call none."""
    command: Any = with_places(typer.main.get_command(make_app(list(arguments))))
    context = command.make_context("quorate", list(arguments))
    while hasattr(context.command, "commands"):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    found: dict[str, Any] = context.params
    return found


def settings_in_documents(process: str) -> set[str]:
    """Names of the settings of `## Controller` or `## Broker` in docs/configuration.md."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    part = next(part for part in re.split(r"^(?=## )", page, flags=re.MULTILINE) if part.startswith(process))
    return set(re.findall(r"^\| `([a-z0-9_.]+)` \|", part, flags=re.MULTILINE))


def unknown_variables(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Those of a file's QUORATE_ variables that are neither a setting nor one of ``known``."""
    unknown = []
    for name in names:
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
        if prefix is None:
            unknown += [name] if name.startswith("QUORATE_") and name not in known else []
        elif name.removeprefix(prefix).lower().replace("__", ".") not in settings_in_documents(_PREFIXES[prefix]):
            unknown.append(name)
    return unknown
