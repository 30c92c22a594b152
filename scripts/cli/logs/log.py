"""`quorate log`: look into log and checkpoint files, Quorate's or Apache Kafka's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.metadata_log.batches.batch import BatchHeader, iter_records
from quorate.metadata_log.directory.reader import FileBatch, LogFile, find_files, iter_batches
from quorate.metadata_log.errors import CorruptBatch, MalformedData
from quorate.metadata_log.records.hidden_values import IsSecret, shown_data
from quorate.metadata_log.records.json_form import json_type
from quorate.metadata_log.records.records import LoggedRecord
from quorate.scripts.cli.logs.log_verification import LogVerdict, LogVerification, total_bytes
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import AtMoment
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.progress.bytes_read import bytes_progress
from quorate.scripts.terminal.secrets_shown import ShowSecrets, secrets_rule
from quorate.snapshots.checkpoints.loading import headers_behind
from quorate.snapshots.checkpoints.moments import Moment, parse_moment
from quorate.snapshots.checkpoints.whole_checkpoints import is_at_or_before

app = typer.Typer(help="Look into metadata logs and checkpoints, Quorate's or Apache Kafka's.", no_args_is_help=True)

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE_OR_DIR...", help="Segments, checkpoints, or directories that hold them.", show_default=False
    ),
]


@app.command()
def dump(
    paths: Paths,
    as_json: Annotated[bool, typer.Option("--json", help="One record a line, in Kafka's JSON form.")] = False,
    at: AtMoment = None,
    show_secrets: ShowSecrets = False,
) -> None:
    """Print batches and records in order.

    Reads segments (*.log) and checkpoints (*.checkpoint) one batch at a time. Where a file is damaged, says file,
    byte position and offset, goes on with the next file and ends with exit code 1. With --at only the records that the
    state at that moment is made of, and no checkpoint that lies beyond it.

    Example: quorate log dump --json var/controller-1/__cluster_metadata-0
    """
    show = partial(_json_lines if as_json else _text_lines, secrets_rule(show_secrets=show_secrets))
    moment = None if at is None else parse_moment(at)
    with reader_may_leave():
        sound = [_dump(file, show, moment, until) for path in paths for file, until in _files(path, moment)]
    if not all(sound):
        raise typer.Exit(exit_codes.REFUSED)


def _files(path: Path, at: Moment | None) -> Iterator[tuple[LogFile, Moment | None]]:
    """The files of a path, and how far its segments are printed: a time as an offset."""
    files = find_files(path)
    segments = [file for file in files if not file.is_checkpoint]
    try:
        until = None if at is None else at.in_log(0, headers_behind(segments, 0, at))
    except CorruptBatch:  # it will be told where it is met
        until = None
    yield from ((file, until) for file in files)


def _dump(
    file: LogFile, show: Callable[[FileBatch, int | None], Iterator[str]], at: Moment | None, until: Moment | None
) -> bool:
    """Print one file, as far as it lies before the moment; whether it is whole so far."""
    try:
        if at is not None and file.is_checkpoint and not is_at_or_before(file, at):
            return True
        for batch in iter_batches(file):
            if until is not None and not file.is_checkpoint and until.is_before(batch.header):
                break
            sys.stdout.writelines(show(batch, None if until is None or file.is_checkpoint else until.offset))
    except CorruptBatch as error:
        sys.stdout.flush()
        sys.stderr.write(f"quorate: {error}\n")
        return False
    return True


@app.command()
def verify(paths: Paths) -> None:
    """Check a log whole: every batch and record, what lies between the files, and replay.

    Says which record cannot be replayed, if any, and whether each checkpoint holds the log's state at its offset.
    Ends with exit code 1 if anything is wrong. A directory is checked as one log; nobody may be writing to it.

    Example: quorate log verify var/controller-1
    """
    with reader_may_leave():
        sound = [_verify(path) for path in paths]
    if not all(sound):
        raise typer.Exit(exit_codes.REFUSED)


def _verify(path: Path) -> bool:
    files = find_files(path)
    with bytes_progress(f"checking {path.name}", total_bytes(files)) as advance:
        verdict = LogVerification(files, advance, is_whole_log=path.is_dir()).run()
    sys.stdout.writelines(f"{line}\n" for line in _verdict_lines(path, verdict))
    return not verdict.findings


def _verdict_lines(path: Path, verdict: LogVerdict) -> Iterator[str]:
    yield str(path)
    yield (
        f"  {_count(verdict.segments, 'segment')}, {_count(verdict.checkpoints, 'checkpoint')}, "
        f"{_count(verdict.batches, 'batch', 'batches')}, {_count(verdict.records, 'record')}"
    )
    if verdict.first_offset is not None and verdict.end_offset is not None:
        yield f"  offsets {verdict.first_offset} to {verdict.end_offset - 1}"
    if verdict.replayed_to is not None:
        yield f"  replayed to offset {verdict.replayed_to}"
    if verdict.checkpoints_compared:
        yield f"  {_count(verdict.checkpoints_compared, 'checkpoint')} compared with the log's own state"
    yield from (f"  note: {note}" for note in verdict.notes)
    yield from (f"  wrong: {finding}" for finding in verdict.findings)
    yield f"  DAMAGED: {_count(len(verdict.findings), 'finding')}" if verdict.findings else "  OK"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _records(batch: FileBatch, below: int | None) -> Iterator[LoggedRecord]:
    try:
        yield from (logged for logged in iter_records(batch.data) if below is None or logged.offset < below)
    except MalformedData as error:
        header = batch.header
        raise CorruptBatch(str(batch.file.path), batch.position, header.base_offset, str(error)) from error


#: One line of JSON; kept, for making one takes longer than encoding a record.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _json_lines(is_secret: IsSecret, batch: FileBatch, below: int | None) -> Iterator[str]:
    # What is the same for all records of the batch is encoded once.
    file = _to_json(str(batch.file.path))
    about = _to_json(_batch_data(batch))
    for logged in _records(batch, below):
        data = _to_json(shown_data(logged.record, logged.version, is_secret))
        yield (
            f'{{"file":{file},"offset":{logged.offset},"timestamp":{logged.timestamp},"key_size":{logged.key_size},'
            f'"value_size":{logged.value_size},"type":"{json_type(logged.record)}","version":{logged.version},'
            f'"data":{data},"batch":{about}}}\n'
        )


def _batch_data(batch: FileBatch) -> dict[str, Any]:
    header = batch.header
    return {
        "base": header.base_offset,
        "last": header.last_offset,
        "count": header.record_count,
        "epoch": header.epoch,
        "control": header.is_control,
        "position": batch.position,
        "timestamp": header.timestamp,
        "size": header.size,
        "crc": header.crc,
    }


def _text_lines(is_secret: IsSecret, batch: FileBatch, below: int | None) -> Iterator[str]:
    if batch.position == 0:
        yield f"{batch.file.path}\n"
    yield _batch_line(batch.header, batch.position)
    for logged in _records(batch, below):
        data = _to_json(shown_data(logged.record, logged.version, is_secret))
        yield f"    {logged.offset:>10}  {json_type(logged.record)} v{logged.version} {data}\n"


def _batch_line(header: BatchHeader, position: int) -> str:
    when = format_time(header.timestamp)
    kind = "control, " if header.is_control else ""
    return (
        f"  batch {header.base_offset}..{header.last_offset} ({kind}{header.record_count} records, "
        f"{header.size} bytes at {position}) epoch {header.epoch} {when}\n"
    )
