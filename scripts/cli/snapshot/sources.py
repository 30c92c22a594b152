"""Shared by `snapshot restore` and `snapshot export`: the source of the state, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from quorate.scripts.cluster.source_state import SourceState, read_source
from quorate.scripts.terminal.connecting import files_not_address
from quorate.scripts.terminal.passed_over import passed_over_documents, say_passed_over
from quorate.scripts.terminal.progress.bytes_read import reading_files
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.image_digest import digest_image

Source = Annotated[
    Path,
    typer.Option(
        "--from",
        metavar="PATH",
        help="A metadata directory, a segment or a checkpoint.",
        callback=files_not_address,
        show_default=False,
    ),
]
Target = Annotated[
    Path,
    typer.Option("--to", metavar="DIR", help="The directory to make; it must not be there yet.", show_default=False),
]


def loaded(source: Path, at: str | None) -> SourceState:
    """The state of a source at a moment, with a word on how far it is read, and one on what was passed over.

    Raises:
        InvalidMoment: ``at`` names none.
        StorageError, ReplayError, ImageNotAvailable: as ``read_source``.
    """
    moment = None if at is None else parse_moment(at)
    with reading_files(source):
        state = read_source(source, moment)
    say_passed_over(state.passed_over)
    return state


def left_lines(state: SourceState) -> Iterator[str]:
    """The records that the source has behind the state, for people."""
    left = state.left
    if left.records:
        yield f"left out: {left.records} records after it, up to offset {left.end_offset}"
    if left.checkpoints:
        yield f"left out: {left.checkpoints} later checkpoint{'s' * (left.checkpoints > 1)}"
    if left.damage:
        yield f"left out and not counted: what follows the damage: {left.damage}"
    if not (left.records or left.checkpoints or left.damage):
        yield "left out: nothing"


def source_document(state: SourceState) -> dict[str, Any]:
    """The state and what was left out, for programs."""
    provenance, left = state.image.provenance, state.left
    return {
        "end_offset": provenance.end_offset,
        "epoch": provenance.epoch,
        "last_record_ms": provenance.log_time_ms,
        "digest": digest_image(state.image).text,
        "next_epoch": state.next_epoch,
        "source_cluster_id": state.cluster_id,
        "passed_over": passed_over_documents(state.passed_over),
        "left_out": {
            "records": left.records,
            "end_offset": left.end_offset,
            "checkpoints": left.checkpoints,
            "damage": left.damage,
        },
    }
