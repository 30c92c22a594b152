"""`quorate image diff`: what differs between two states."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.metadata_log.errors import NotController, QuorateError
from quorate.scripts.cli.logs.image_sources import Source, read_source
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import SecretFile
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.passed_over import passed_over_documents
from quorate.scripts.terminal.programs.failures import USAGE, Failed
from quorate.snapshots.difference.difference_entries import Entry, FieldChange, PartDifference
from quorate.snapshots.difference.image_difference import image_difference

#: What stands before an entry.
SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}
_SOURCE = (
    "A metadata directory, segment or checkpoint, or http://HOST:PORT of a controller (https:// with QUORATE_CA_FILE); "
    "then @OFFSET, @TIME or @epoch:N."
)


class Ignored(StrEnum):
    """Parts of the states that may be left out of a comparison."""

    EPOCHS = "epochs"


A = Annotated[str, typer.Argument(metavar="A", help=_SOURCE, show_default=False)]
B = Annotated[str, typer.Argument(metavar="B", help="The same.", show_default=False)]


def diff(
    a: A,
    b: B,
    match_names: Annotated[
        bool,
        typer.Option("--match-names", help="Two clusters: do not compare ids that each makes up, find topics by name."),
    ] = False,
    ignored: Annotated[
        Ignored | None,
        typer.Option(
            "--ignore", help="Do not compare the epochs of brokers, partitions and leaders: they count changes."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, metavar="N", help="Show so many entries of each part at most.")
    ] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="The same as one JSON value.")] = False,
    secret_file: SecretFile = None,
) -> None:
    """Show what differs between two states: of one log at two offsets, of two files, of a file and a cluster.

    The order of an ISR is no difference, nor is what the states cover. Secrets are compared and not shown. Exit code
    as of diff: 0 the same, 1 not the same, 2 one cannot be read; 3 a controller does not answer.

    Example: quorate image diff var/controller-1@2000 http://127.0.0.1:18081
    """
    from quorate.controller.configs.resources import is_sensitive

    old, new = _read(a, secret_file), _read(b, secret_file)
    parts = image_difference(
        old.image, new.image, is_sensitive, by_name=match_names, without_epochs=ignored is not None
    )
    with reader_may_leave():
        if as_json:
            sys.stdout.writelines(_json_pieces(old, new, parts, limit, by_name=match_names, ignored=ignored))
        else:
            sys.stdout.writelines(f"{line}\n" for line in _lines(old, new, parts, limit))
    if any(parts):
        raise typer.Exit(exit_codes.REFUSED)


def _read(text: str, secret_file: Path | None) -> Source:
    try:
        return read_source(text, secret_file)
    except NotController:
        raise
    except QuorateError as error:
        # Not 1, which says that there are differences.
        raise Failed(str(error), name=USAGE) from None


# --- for people ---------------------------------------------------------------------------------------


def _lines(old: Source, new: Source, parts: Sequence[PartDifference], limit: int) -> Iterator[str]:
    for sign, source in (("---", old), ("+++", new)):
        at = source.image.provenance
        yield f"{sign} {source.name}: offset {at.end_offset}, epoch {at.epoch}, {format_time(at.log_time_ms)}"
    for part in parts:
        if part:
            yield from _part_lines(part, limit)
    if not any(parts):
        yield "The states are the same."


def _part_lines(part: PartDifference, limit: int) -> Iterator[str]:
    counts = {"added": part.added, "removed": part.removed, "changed": part.changed}
    said = ", ".join(f"{count:,} {change}" for change, count in counts.items() if count)
    fields = ", ".join(f"{field} {count:,}" for field, count in part.fields.items())
    yield f"{part.part}: {said}" + (f" ({fields})" if fields else "")
    for entry in islice(part.entries, limit):
        yield f"  {SIGNS[entry.change]} {entry.name}{fields_text(entry)}"
    left = sum(counts.values()) - limit
    if left > 0:
        yield f"  ... and {left:,} more: --limit shows more"


def fields_text(entry: Entry) -> str:
    """The text about an entry behind its name."""
    if entry.change == "changed":
        texts = [f"{name} {_value_text(field.old)} -> {_value_text(field.new)}" for name, field in entry.fields.items()]
    else:
        texts = [f"{name} {_value_text(_present(entry, field))}" for name, field in entry.fields.items()]
    return ": " + ", ".join(texts) if texts else ""


def _present(entry: Entry, field: FieldChange) -> Any:
    return field.new if entry.change == "added" else field.old


def _value_text(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list) and all(isinstance(one, (int, str)) for one in value):
        return "[" + ",".join(map(str, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- for programs -------------------------------------------------------------------------------------


def _json_pieces(
    old: Source, new: Source, parts: Sequence[PartDifference], limit: int, *, by_name: bool, ignored: Ignored | None
) -> Iterator[str]:
    """One JSON value, piece by piece: there may be a million entries."""
    head = {
        "same": not any(parts),
        "matched_by_name": by_name,
        "ignored": [] if ignored is None else [ignored],
        "old": _source_json(old),
        "new": _source_json(new),
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "parts": {'
    for number, part in enumerate(parts):
        counts = {"added": part.added, "removed": part.removed, "changed": part.changed, "fields": dict(part.fields)}
        yield (",\n" if number else "\n") + json.dumps(part.part) + ": " + json.dumps(counts)[:-1] + ', "entries": ['
        for place, entry in enumerate(islice(part.entries, limit)):
            yield (",\n " if place else "\n ") + json.dumps(_entry_json(entry), ensure_ascii=False)
        yield "]}"
    yield "\n}}\n"


def _source_json(source: Source) -> dict[str, Any]:
    at = source.image.provenance
    return {
        "name": source.name,
        "state_offset": at.end_offset,
        "epoch": at.epoch,
        "log_time_ms": at.log_time_ms,
        "passed_over": passed_over_documents(source.passed_over),
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {"change": entry.change, "name": entry.name, "fields": fields_json(entry)}


def fields_json(entry: Entry) -> dict[str, Any]:
    """Old and new value of the fields that differ."""
    return {name: {"old": field.old, "new": field.new} for name, field in entry.fields.items()}
