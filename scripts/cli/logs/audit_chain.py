"""`quorate audit`: whether what a controller wrote down about requests is as it was written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY, audit_files
from quorate.metadata_log.audit.chained_lines import BEGIN, ChainVerdict, verify_chain
from quorate.metadata_log.audit.read_lines import READ_FILES, read_reads
from quorate.metadata_log.audit.refusal_lines import refusal_files
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.tables import columns

_TITLES: Final = ("TIME", "NODE", "TIMES", "REQUEST", "PRINCIPAL", "PROOF", "PROXY", "ADDRESS")

app = typer.Typer(
    help="What a controller wrote down about who asked for what, and what was refused.", no_args_is_help=True
)


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
    retention removed, and the last, kept elsewhere, shows later what was cut off or written anew. All that is named is
    checked, and what is wrong with one keeps nobody from the next. Exit code 0: all is as it was written; 1: a chain is
    broken, or one could not be read.

    Example: quorate audit verify var/controller-1 var/controller-2
    """
    checked = [_check(name, files) for name, files in _chains(paths)]
    with reader_may_leave():
        for one in checked:
            sys.stdout.writelines(f"{line}\n" for line in (_json if as_json else _lines)(one))
        if len(checked) > 1 and not as_json:
            sys.stdout.write(f"{_summary(checked)}\n")
    if not all(one.is_right for one in checked):
        raise typer.Exit(exit_codes.REFUSED)


@app.command()
def reads(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DIRECTORY...", help="Metadata directories.", show_default=False)
    ],
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, metavar="N", help="The last N at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line.")] = False,
) -> None:
    """Show who read what, as controllers with `audit.reads` wrote it down: when, how often, in whose name, from where.

    PROOF is how it was proved whose name it is: certificate, token, scram, ...; `said`: by nothing. PROXY asked in it.
    Exit code 0, also where nothing was read; 2: there is no such directory.

    Example: quorate audit reads var/controller-1 --limit 20
    """
    for path in paths:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory: name the metadata directory of a controller")
    for directory in paths:
        if not READ_FILES.of(directory):
            sys.stderr.write(f"quorate: {directory} has no lines about reads: audit.reads is off, or nobody has read\n")
    told = [(directory.name, line) for directory in paths for line in read_reads(directory, limit)]
    told = sorted(told, key=lambda one: one[1].time_ms)[-limit:]
    with reader_may_leave():
        if as_json:
            sys.stdout.writelines(f"{json.dumps({'node': node, **line._asdict()})}\n" for node, line in told)
            return
        rows = [
            (format_time(line.time_ms), node, str(line.times), line.request or "(of many kinds)", line.principal or "-",
             line.proof or "-", line.proxy or "-", line.address or "-")
            for node, line in told
        ]  # fmt: skip
        sys.stdout.writelines(f"{line}\n" for line in columns([_TITLES, *rows]))


class _Checked(NamedTuple):
    """A chain, by the name that it is called by, and what came of looking at it."""

    name: str
    verdict: ChainVerdict | None
    #: Why there is no verdict.
    unreadable: str | None = None

    @property
    def is_right(self) -> bool:
        return self.verdict is not None and self.verdict.broken is None


def _chains(paths: list[Path]) -> Iterator[tuple[str, list[Path] | None]]:
    """Each chain with what it is called, and None for what is none. Files that are named are one: who names some of a
    directory names all.
    """
    named = [path for path in paths if path.is_file()]
    if named:
        yield ", ".join(map(str, named)), named
    for path in paths:
        if path in named:
            continue
        changes, refusals, reads = audit_files(path), refusal_files(path), READ_FILES.of(path)
        if not (changes or refusals or reads):
            yield str(path), None
            continue
        yield f"{path}: changes", changes
        yield f"{path}: refusals", refusals
        if reads:
            yield f"{path}: reads", reads


def _check(name: str, files: list[Path] | None) -> _Checked:
    if files is None:
        is_there = Path(name).exists()
        why = f"holds no audit lines ({AUDIT_DIRECTORY}/)" if is_there else "there is no such file or directory"
        return _Checked(name, None, why)
    try:
        return _Checked(name, verify_chain(files))
    except OSError as error:
        return _Checked(name, None, f"{error.filename or name}: {error.strerror or error}")


def _summary(checked: list[_Checked]) -> str:
    broken = sum(one.verdict is not None and not one.is_right for one in checked)
    unreadable = sum(one.verdict is None for one in checked)
    right = len(checked) - broken - unreadable
    return f"{len(checked)} chains: {right} as written, {broken} broken, {unreadable} not readable"


def _lines(one: _Checked) -> Iterator[str]:
    yield one.name
    if one.verdict is None:
        yield f"  NOT READABLE: {one.unreadable}"
        return
    verdict = one.verdict
    yield f"  {verdict.lines:,} lines in {verdict.files:,} files"
    if verdict.broken is not None:
        yield f"  BROKEN: {verdict.broken.file}, line {verdict.broken.line}: {verdict.broken.why}"
        return
    yield "  begins with the first line ever" if verdict.begin == BEGIN else f"  begins behind {verdict.begin.decode()}"
    yield f"  ends with {verdict.end.decode()}" if verdict.lines else "  holds nothing"
    yield "  OK"


def _json(one: _Checked) -> Iterator[str]:
    verdict, broken = one.verdict, None if one.verdict is None else one.verdict.broken
    document = {
        "chain": one.name,
        "files": None if verdict is None else verdict.files,
        "lines": None if verdict is None else verdict.lines,
        "begin": None if verdict is None else verdict.begin.decode(),
        "end": None if verdict is None else verdict.end.decode(),
        "broken": None if broken is None else {"file": str(broken.file), "line": broken.line, "why": broken.why},
        "unreadable": one.unreadable,
    }
    yield json.dumps(document, ensure_ascii=False)
