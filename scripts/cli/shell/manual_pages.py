"""Manual pages made of commands as they are: their help, options and arguments, in the form of man(7).

One page a command, `quorate-topics-list.1`, and one a group of them: what `--help` says, and the exit codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Any, Final, NamedTuple

import typer

from quorate.metadata_log.release import release
from quorate.scripts.logins import cluster_variables
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.places.chosen import CONTEXT_VARIABLE

SECTION: Final = 1
_EXAMPLES: Final = re.compile(r"^Examples?\b[^:\n]*: *", re.MULTILINE)
_LONG_WORD: Final = re.compile(r"\S{50,}")
_CODES: Final[Mapping[int, str]] = {
    exit_codes.DONE: "Done.",
    exit_codes.REFUSED: "Refused, or what was asked is not so.",
    exit_codes.USAGE: "The command line is wrong; nothing was done.",
    exit_codes.UNREACHABLE: "No controller could be reached.",
    exit_codes.OUTCOME_UNKNOWN: "The change may have been made: read before it is repeated.",
    exit_codes.CRITICAL: "Of status: partitions have no leader.",
    exit_codes.FAULT: "A controller ended because of a fault.",
    exit_codes.INTERRUPTED: "Ended by Ctrl-C.",
}
_VARIABLES: Final = (
    CONTEXT_VARIABLE,
    cluster_variables.CONTROLLERS_VARIABLE,
    cluster_variables.DIRECTORY_VARIABLE,
    cluster_variables.SECRET_VARIABLE,
    cluster_variables.PRINCIPAL_VARIABLE,
    cluster_variables.CA_VARIABLE,
    cluster_variables.CERT_VARIABLE,
    cluster_variables.KEY_VARIABLE,
    cluster_variables.USER_VARIABLE,
    cluster_variables.PASSWORD_VARIABLE,
)


class ManualPage(NamedTuple):
    """A page."""

    #: As `quorate-topics-list`.
    name: str
    #: In the form of man(7).
    text: str

    @property
    def file_name(self) -> str:
        """As `quorate-topics-list.1`."""
        return f"{self.name}.{SECTION}"


def pages_of(command: Any, name: str, above: str | None = None) -> Iterator[ManualPage]:
    """The page of a command, and those of all below it.

    Args:
        command: as Typer makes it. name: with those above it, as `quorate-topics`. above: the page of its group.
    """
    below = getattr(command, "commands", {})
    related = ([] if above is None else [above]) + [f"{name}-{word}" for word in below]
    yield ManualPage(name, "".join(f"{line}\n" for line in _lines(command, name, related)))
    for word, one in below.items():
        yield from pages_of(one, f"{name}-{word}", name)


def overview(summaries: Mapping[str, str]) -> ManualPage:
    """The page of all commands. ``summaries``: by name."""
    lines = [
        _title("quorate"),
        ".SH NAME",
        r"quorate \- a KRaft-style metadata controller: run it, look into it, rehearse on it",
        ".SH SYNOPSIS",
        r"\fBquorate\fR COMMAND [\fIoptions\fR] [\fIarguments\fR]",
        ".SH COMMANDS",
    ]
    for name, summary in summaries.items():
        lines += [".TP", rf"\fB{_escaped(name)}\fR", _escaped(summary)]
    lines += [*_exit_status(), *_environment(), *_see_also([f"quorate-{name}" for name in summaries])]
    return ManualPage("quorate", "".join(f"{line}\n" for line in lines))


def _lines(command: Any, name: str, related: list[str]) -> Iterator[str]:
    context = typer.Context(command, info_name=name.replace("-", " ", 1))
    help_, examples = _help_of(command)
    summary = " ".join(help_.partition("\n\n")[0].split())
    yield _title(name)
    yield from (".SH NAME", rf"{_escaped(name)} \- {_escaped(summary.rstrip('.'))}")
    spoken = rf"\fB{_escaped(_spoken(name, command))}\fR"
    yield from (".SH SYNOPSIS", " ".join([spoken, *map(_escaped, _synopsis(command))]))
    yield ".SH DESCRIPTION"
    for paragraph in help_.split("\n\n"):
        yield from (".PP", _escaped(" ".join(paragraph.split())))
    records = [record for one in command.params if (record := one.get_help_record(context)) is not None]
    if records:
        yield ".SH OPTIONS"
    for words, meaning in records:
        yield from (".TP", rf"\fB{_escaped(words)}\fR", _escaped(" ".join(meaning.split())))
    below = getattr(command, "commands", {})
    if below:
        yield ".SH COMMANDS"
    for word, one in below.items():
        first = _help_of(one)[0].partition("\n\n")[0]
        yield from (".TP", rf"\fB{_escaped(word)}\fR", _escaped(" ".join(first.split())))
    if examples:
        yield ".SH EXAMPLES"
    for example in examples:
        yield from (".PP", ".EX", *map(_escaped, example.splitlines()), ".EE")
    yield from _exit_status()
    yield from _environment()
    yield from _see_also(["quorate", *related])


def _spoken(name: str, command: Any) -> str:
    """As it is typed: of `quorate-can-stop-broker` only some dashes are spaces."""
    own = command.name or ""
    head = name[: -len(own) - 1] if own and name.endswith(f"-{own}") else name
    return f"{head.replace('quorate-', 'quorate ', 1)} {own}" if head != name else name.replace("-", " ", 1)


def _synopsis(command: Any) -> Iterator[str]:
    """The words that are typed behind the name. Typer's own form of an argument has braces that nobody types."""
    yield command.options_metavar
    for one in command.params:
        if one.param_type_name == "argument" and not one.hidden:
            yield _argument(one)
    if getattr(command, "commands", {}):
        yield command.subcommand_metavar


def _argument(argument: Any) -> str:
    """As `ID`, `ID...` for several, `[ID]` and `[ID...]` where there may be none."""
    name = (argument.metavar or argument.name).removesuffix("...") + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _help_of(command: Any) -> tuple[str, list[str]]:
    """The text, and the examples that stand at its end."""
    text = (command.help or "").replace("\b", "")
    parts = _EXAMPLES.split(text, maxsplit=1)
    examples = [dedent(block).strip("\n") for block in parts[1].split("\n\n")] if len(parts) > 1 else []
    return parts[0].strip(), [block for block in examples if block]


def _title(name: str) -> str:
    # Words are not parted, nor lines stretched: options and addresses are copied from here.
    return f'.TH {name.upper()} {SECTION} "" "quorate {release()}" "Quorate"\n.nh\n.ad l'


def _exit_status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in _CODES.items():
        yield from (".TP", rf"\fB{code}\fR", _escaped(meaning))


def _environment() -> Iterator[str]:
    yield from (".SH ENVIRONMENT", ".PP", f"{', '.join(_VARIABLES)}: which cluster is asked, and who asks.")


def _see_also(names: list[str]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    yield ",\n".join(rf"\fB{_escaped(name)}\fR({SECTION})" for name in names)


def _escaped(text: str) -> str:
    """Text of which nothing is a request or an escape to groff."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    # A word that no line can hold, as JSON without spaces, may be broken behind a comma.
    plain = _LONG_WORD.sub(lambda word: word[0].replace(",", r",\:"), plain)
    return rf"\&{plain}" if plain.startswith((".", r"\(aq")) else plain
