"""`quorate audit`: whether what a controller wrote down about requests is as it was written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY, audit_files
from quorate.metadata_log.audit.chained_lines import BEGIN, ChainVerdict, verify_chain
from quorate.metadata_log.audit.refusal_lines import refusal_files
from quorate.metadata_log.errors import StorageError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.output import reader_may_leave

app = typer.Typer(
    help="What a controller wrote down about who asked for what, and what was refused.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Keep the name of the command necessary though there is one only."""


@app.command()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE_OR_DIR...", help="Metadata directories; or all files of one.", show_default=False),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a chain.")] = False,
) -> None:
    """Check that no line was changed, added or removed, and name the first one that was.

    Each line carries the digest of the one before it. Says the digests at both ends: the first is of lines that
    retention removed, and the last, kept elsewhere, shows later what was cut off or written anew. Exit code 1: broken.

    Example: quorate audit verify var/controller-1
    """
    verdicts = [(name, verify_chain(files)) for name, files in _chains(paths)]
    with reader_may_leave():
        for name, verdict in verdicts:
            sys.stdout.writelines(f"{line}\n" for line in (_json if as_json else _lines)(name, verdict))
    if any(verdict.broken is not None for _, verdict in verdicts):
        raise typer.Exit(exit_codes.REFUSED)


def _chains(paths: list[Path]) -> Iterator[tuple[str, list[Path]]]:
    """Each chain with what it is called. Files that are named are one: who names some of a directory names all."""
    named = [path for path in paths if not path.is_dir()]
    missing = [path for path in named if not path.exists()]
    if missing:
        raise StorageError(f"{missing[0]}: there is no such file or directory")
    if named:
        yield ", ".join(map(str, named)), named
    for directory in paths:
        if directory.is_dir():
            changes, refusals = audit_files(directory), refusal_files(directory)
            if not (changes or refusals):
                raise StorageError(f"{directory}: holds no audit lines ({AUDIT_DIRECTORY}/)")
            yield f"{directory}: changes", changes
            yield f"{directory}: refusals", refusals


def _lines(name: str, verdict: ChainVerdict) -> Iterator[str]:
    yield name
    yield f"  {verdict.lines:,} lines in {verdict.files:,} files"
    if verdict.broken is not None:
        yield f"  BROKEN: {verdict.broken.file}, line {verdict.broken.line}: {verdict.broken.why}"
        return
    yield "  begins with the first line ever" if verdict.begin == BEGIN else f"  begins behind {verdict.begin.decode()}"
    yield f"  ends with {verdict.end.decode()}" if verdict.lines else "  holds nothing"
    yield "  OK"


def _json(name: str, verdict: ChainVerdict) -> Iterator[str]:
    broken = verdict.broken
    document = {
        "chain": name,
        "files": verdict.files,
        "lines": verdict.lines,
        "begin": verdict.begin.decode(),
        "end": verdict.end.decode(),
        "broken": None if broken is None else {"file": str(broken.file), "line": broken.line, "why": broken.why},
    }
    yield json.dumps(document, ensure_ascii=False)
