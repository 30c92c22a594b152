"""Answers from files: those of a node that stands still in their state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from quorate.controller.http.ports import Node
from quorate.controller.process.image_answers import StillAnswers
from quorate.controller.process.image_node import node_of
from quorate.controller.reads.absences import Absences
from quorate.controller.reads.additions import Additions, adding_changes
from quorate.metadata_log.directory.epoch_leader import leader_in_files
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.directory.reader import FileBatch, find_files
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.ids import Uuid
from quorate.scripts.terminal.passed_over import load_image_and_say
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.errors import ImageNotAvailable


class FileAnswers(StillAnswers):
    """A controller whose state is that of files at a moment."""

    def __init__(self, path: Path, at: str | None) -> None:
        """Nothing is read before the first question; then, beside ``ApiError``, what ``load_image`` raises."""
        super().__init__(lambda: still_node(path, at))


def still_node(path: Path, at: str | None) -> Node:
    """The node, on the running loop; ``at``: a moment as commands take it, None: the end of what the files hold.

    Raises:
        InvalidMoment; what ``load_image`` raises.
    """
    image, _ = load_image_and_say(path, None if at is None else parse_moment(at))
    leader_id = leader_in_files(path, image.provenance.epoch)
    return node_of(image, _cluster_id(path), leader_id, _FileLog(path))


class _FileLog:
    """``BrokerAbsences`` and ``ReplicaAdditions`` of files."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def at(self, end_offset: int) -> Mapping[int, int]:
        absences = Absences()
        try:
            for batch in self._batches(end_offset):
                absences.take_batches(batch.data, end_offset)
        except (ImageNotAvailable, StorageError):
            return {}  # the state came from a checkpoint, and no log that leads up to it is whole
        return absences.since_ms

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        additions = Additions()
        try:
            for batch in self._batches(end_offset):
                additions.take(adding_changes(batch.data, end_offset)[0])
        except (ImageNotAvailable, StorageError):
            return {}  # as above
        return additions.since_ms(topic_id, partition, end_offset)

    def _batches(self, end_offset: int) -> Iterator[FileBatch]:
        return takewhile(lambda batch: batch.header.base_offset < end_offset, batches_from_start(self._path)[1])


def _cluster_id(path: Path) -> str:
    """The cluster that the directory belongs to, or is in, or a checkpoint was saved from; "" where nothing says so."""
    saved = find_files(path)[0].saved
    if saved is not None:
        return saved.cluster_id
    for directory in (path, *path.absolute().parents[:2]):
        file = directory / META_PROPERTIES_NAME
        if file.is_file():
            return decode_meta_properties(file.read_bytes(), str(file)).cluster_id
    return ""
