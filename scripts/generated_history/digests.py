"""``scripts/replay-digests``: what the controllers' own replay makes of a log, as digests at many offsets, in one pass.

The other implementation of replay is held against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.directory.reader import FileBatch, LogFile, find_files, iter_batches
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    VersionedRecord,
)
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image_digest import EMPTY_DIGEST, digest_image
from quorate.snapshots.replay.replay_state import ReplayState

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state of all records before an offset."""

    offset: int
    digest: str
    partitions: int
    #: Offset of the Begin of the transaction that is open there: none of it is in the state.
    transaction: int | None


def states_at(directory: Path, offsets: list[int]) -> Iterator[StateAt]:
    """The states at ascending offsets of a log that begins at 0.

    Raises:
        ImageNotAvailable: the log does not begin at 0, or ends before the last offset.
        QuorateError: it is damaged, or cannot be replayed.
    """
    state, digest = ReplayState(), EMPTY_DIGEST
    due = iter(offsets)
    offset = next(due, None)
    for batch in _batches(directory):
        header = batch.header
        before = state
        while offset is not None and offset <= header.end_offset:
            at = _part_of(before, batch, offset) if header.base_offset < offset else before
            digest = digest_image(at.stable, digest)
            yield StateAt(offset, digest.text, len(at.stable.partitions), at.begin_offset)
            offset = next(due, None)
        if offset is None:
            return
        state = before.replay_batch(batch.data)
    raise ImageNotAvailable(f"{directory}: the log ends at offset {state.end_offset}, before {offset}")


def _part_of(before: ReplayState, batch: FileBatch, offset: int) -> ReplayState:
    header = batch.header
    records = [VersionedRecord(r.record, r.version) for r in iter_records(batch.data) if r.offset < offset]
    return before.replay_items(
        records, header.base_offset, header.epoch, header.timestamp, is_control=header.is_control
    )


def _batches(directory: Path) -> Iterator[FileBatch]:
    segments = _segments(directory)
    return (batch for file in segments for batch in iter_batches(file))


def _segments(directory: Path) -> list[LogFile]:
    segments = [file for file in find_files(directory) if not file.is_checkpoint]
    if not segments or segments[0].offset != 0:
        raise ImageNotAvailable(f"{directory}: the log does not begin at offset 0; digests need all of it")
    return segments


def random_offsets(directory: Path, count: int, seed: int) -> list[int]:
    """Offsets at random, ascending; a third of them inside transactions where there are any, open ones included."""
    end, spans = _transactions(directory)
    chance = Random(seed)
    chosen = chance.choices(spans, k=count // 3) if spans else []
    inside = [chance.randrange(begin + 1, until + 1) for begin, until in chosen]
    return sorted([*inside, *(chance.randrange(1, end + 1) for _ in range(count - len(inside)))])


def _transactions(directory: Path) -> tuple[int, list[tuple[int, int]]]:
    """The log's end, and (offset of Begin, that of the end marker or the log's end) of every transaction."""
    spans: list[tuple[int, int]] = []
    begin: int | None = None
    end = 0
    for batch in _batches(directory):
        end = batch.header.end_offset
        offset = batch.header.base_offset
        for item in decode_batch(batch.data):
            if not isinstance(item, VersionedRecord):
                offset += len(item)
                continue
            if isinstance(item.record, BeginTransactionRecord):
                begin = offset
            elif isinstance(item.record, (EndTransactionRecord, AbortTransactionRecord)) and begin is not None:
                spans.append((begin, offset))
                begin = None
            offset += 1
    if begin is not None:
        spans.append((begin, end))
    return end, spans


@app.command()
def replay_digests(
    directory: Annotated[Path, typer.Argument(help="A directory with a log from offset 0 on.", show_default=False)],
    at: Annotated[list[int] | None, typer.Option(help="An offset; may be repeated.", show_default=False)] = None,
    count: Annotated[int, typer.Option("--random", min=0, help="So many offsets at random.")] = 0,
    seed: Annotated[int, typer.Option(help="For --random.")] = 1,
) -> None:
    """Print the digest of the controllers' own replay at some offsets, one JSON document a line.

    The state at an offset is that of all records before it; transactions that are open there do not count. A third of
    the offsets at random lie inside transactions.

    Example: scripts/replay-digests /tmp/history --random 20
    """
    try:
        offsets = sorted([*(at or []), *(random_offsets(directory, count, seed) if count else [])])
        if not offsets:
            raise typer.BadParameter("say at which offsets: --at OFFSET, or --random COUNT")
        for state in states_at(directory, offsets):
            print(json.dumps(asdict(state)), flush=True)
    except QuorateError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(exit_codes.REFUSED) from error


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/replay-digests")
