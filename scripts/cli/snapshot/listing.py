"""The listing of `quorate snapshot list`: the checkpoints of controllers, or those in a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from quorate.controller.api.checkpoint_models import CheckpointReply, CheckpointsReply
from quorate.controller.http.handlers.checkpoint_views import checkpoint_reply, checkpoints_with_state
from quorate.metadata_log.checkpoints.checkpoint_files import survey_checkpoints
from quorate.metadata_log.checkpoints.checkpoints import CheckpointStore
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import StorageError
from quorate.scripts.terminal.output import format_time

TITLES: Final = ("END-OFFSET", "EPOCH", "BYTES", "LAST-RECORD", "MANIFEST", "DIGEST")


class Listed(BaseModel):
    """The checkpoints of one place, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    #: URL of a controller, or path of a directory.
    place: str
    #: Why nothing is known of it; empty where it was asked.
    failure: str
    #: Of a controller; None for a directory.
    node_id: int | None
    applied_offset: int | None
    writing_offset: int | None
    checkpoints: list[CheckpointReply]
    #: Files in a directory that are no usable checkpoints: a sentence each.
    damaged: list[str]


class ListedCheckpoints(BaseModel):
    """All that was listed, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    places: list[Listed]


def of_controller(url: str, reply: CheckpointsReply | None, failure: str = "") -> Listed:
    """A controller's checkpoints, or the reason why it does not list them."""
    return Listed(
        place=url,
        failure=failure,
        node_id=None if reply is None else reply.node_id,
        applied_offset=None if reply is None else reply.applied_offset,
        writing_offset=None if reply is None else reply.writing_offset,
        checkpoints=[] if reply is None else reply.checkpoints,
        damaged=[],
    )


def of_directory(path: Path) -> Listed:
    """The checkpoints in a metadata directory, its log directory, or any other; each file is checked.

    Raises:
        StorageError: there is no such directory.
    """
    inner = path / LOG_DIRECTORY_NAME
    directory = inner if inner.is_dir() else path
    if not directory.is_dir():
        raise StorageError(f"{path}: no such directory")
    disk = RealDisk()
    survey = survey_checkpoints(disk, str(directory))
    store = CheckpointStore(disk, str(directory), survey)
    return Listed(
        place=str(directory),
        failure="",
        node_id=None,
        applied_offset=None,
        writing_offset=None,
        checkpoints=[checkpoint_reply(store, info) for info in checkpoints_with_state(store)],
        damaged=[str(error) for error in survey.damaged],
    )


def table_rows(listed: Listed) -> Iterator[tuple[str, ...]]:
    """The checkpoints of one place, oldest first."""
    for one in listed.checkpoints:
        last = format_time(one.last_record_ms)
        yield (str(one.end_offset), str(one.epoch), str(one.size), last, one.manifest, one.digest or "-")
