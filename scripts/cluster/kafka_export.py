"""A directory for each voter of a new quorum that Apache Kafka 4 starts from: a checkpoint, or one and a log.

Everything is in Kafka's own form, and nothing of ours is beside it. The controllers of the directories are the caller's
choice, so whatever the source says of its voters is said anew: at the head of the checkpoint, and in the control
batches of the tail, where a record of voters becomes one of the new voters. All other bytes of the tail stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.controller.operations.bootstrap import bootstrap_checkpoint, feature_records
from quorate.metadata_log.batches.batch import control_batch, iter_records, place_batch
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.directory.directory import FormatPlan, ImportedFile, format_directory, voters_checkpoint
from quorate.metadata_log.directory.meta_properties import MetaProperties
from quorate.metadata_log.directory.quorum_state import QuorumState
from quorate.metadata_log.directory.reader import FileBatch, find_files
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.log.recovery import LEADER_EPOCHS_NAME, leader_epochs_file
from quorate.metadata_log.records.records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.scripts.cluster.new_directories import all_or_nothing
from quorate.scripts.cluster.source_state import SourceState
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import batches_behind
from quorate.snapshots.checkpoints.whole_checkpoints import first_whole
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import KRaftImage

#: Kafka's segments hold no more.
_TAIL_BYTES_MAX: Final = 1024**3


class ExportError(QuorateError):
    """The state cannot be exported as it is asked for. One sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class ExportedVoter:
    """A controller that is to start on one of the directories."""

    id: int
    host: str
    port: int
    directory_id: Uuid


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The export that is wanted."""

    cluster_id: str
    voters: tuple[ExportedVoter, ...]
    #: With static voters (kraft.version 0) nothing in the log says who they are: Kafka's settings do.
    is_static: bool
    listener: str = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class Tail:
    """The log between a checkpoint and the state that is exported."""

    #: Where it begins; 0: the log's own beginning, and no checkpoint.
    base_offset: int
    batches: tuple[bytes, ...]
    #: First offset of each epoch in it.
    epochs: tuple[tuple[int, int], ...]


def voter_directory(directory: Path, voter: ExportedVoter) -> Path:
    """Metadata directory of one voter."""
    return directory / f"controller-{voter.id}"


def export(source: Path, state: SourceState, directory: Path, plan: ExportPlan, *, with_log: bool) -> int:
    """Make ``directory``, which must not be there yet; the offset of its checkpoint (0: it has none).

    Args:
        with_log: keep the log from the newest checkpoint of the source on, instead of a checkpoint of the state.

    Raises:
        ExportError, ClusterError: it cannot be. StorageError: the source cannot be read.
    """
    record = _voters_record(plan)
    kraft = KRaftImage() if plan.is_static else KRaftImage(1, record)
    image, tail = state.image, None
    if with_log:
        image, tail = _split(source, state, None if plan.is_static else record)
    image = image._replace(kraft=kraft)
    files = tuple(_files(image, tail))
    with all_or_nothing(directory) as making:
        for voter in plan.voters:
            path = voter_directory(making, voter)
            format_directory(RealDisk(), str(path), _format_plan(plan, voter, state, record, image, files))
    return image.provenance.end_offset


def _voters_record(plan: ExportPlan) -> VotersRecord:
    return VotersRecord(
        tuple(
            VotersVoter(
                voter.id,
                voter.directory_id,
                (VoterEndpoint(plan.listener, voter.host, voter.port),),
                KRaftVersionFeature(0, 1),
            )
            for voter in sorted(plan.voters, key=lambda voter: voter.id)
        )
    )


def _format_plan(
    plan: ExportPlan,
    voter: ExportedVoter,
    state: SourceState,
    record: VotersRecord,
    image: MetadataImage,
    files: tuple[ImportedFile, ...],
) -> FormatPlan:
    now_ms = time.time_ns() // 1_000_000
    is_beginning = image.provenance.end_offset == 0
    ids = tuple(sorted(voter.id for voter in plan.voters))
    return FormatPlan(
        meta=MetaProperties(plan.cluster_id, voter.id, voter.directory_id),
        bootstrap=bootstrap_checkpoint(now_ms, feature_records(state.image.features)),
        voters=voters_checkpoint(record, now_ms) if is_beginning and not plan.is_static else None,
        quorum_state=QuorumState(
            leader_epoch=state.next_epoch,
            data_version=0 if plan.is_static else 1,
            current_voters=ids if plan.is_static else (),
        ),
        imported=files,
        has_ballast=False,
    )


def _files(image: MetadataImage, tail: Tail | None) -> Iterator[ImportedFile]:
    """The files of a log directory beside those that formatting makes."""
    provenance = image.provenance
    if provenance.end_offset:
        name = checkpoint_name(CheckpointId(provenance.end_offset, provenance.epoch))
        chunks = list(checkpoint_batches(image, time.time_ns() // 1_000_000))
        yield ImportedFile(name, lambda: chunks)
    if tail is not None and tail.batches:
        yield ImportedFile(segment_name(tail.base_offset), lambda: tail.batches)
        yield ImportedFile(LEADER_EPOCHS_NAME, lambda: (leader_epochs_file(tail.epochs),))


# --- the log's tail ----------------------------------------------------------------------------------


def _split(source: Path, state: SourceState, voters: VotersRecord | None) -> tuple[MetadataImage, Tail]:
    """The state of the newest whole checkpoint at or before the state that is exported, and the log between the two."""
    end = state.image.provenance.end_offset
    files = find_files(source)
    older = [file for file in reversed(files) if file.is_checkpoint and (file.offset or 0) <= end]
    # What is passed over was told when the state was read.
    begin = first_whole(older, lambda passed_over: None)
    image = EMPTY_IMAGE if begin is None else begin.image
    base = image.provenance.end_offset
    batches: list[bytes] = []
    epochs: list[tuple[int, int]] = []
    size = 0
    reached = base
    for batch in batches_behind([file for file in files if not file.is_checkpoint], base):
        if batch.header.end_offset > end:
            break
        if batch.header.base_offset > reached:
            missing = f"records {reached} to {batch.header.base_offset - 1}"
            raise ExportError(f"{source}: {missing} are missing: name the directory, or export without the log")
        size += batch.header.size
        if size > _TAIL_BYTES_MAX:
            raise ExportError(f"{source}: the log after offset {base} is more than a segment: take a checkpoint")
        batches.append(_with_voters(batch, voters))
        if not epochs or batch.header.epoch > epochs[-1][0]:
            epochs.append((batch.header.epoch, batch.header.base_offset))
        reached = batch.header.end_offset
    if reached != end:
        raise ExportError(f"{source}: no batch ends at offset {end}: export another offset, or without the log")
    return image, Tail(base, tuple(batches), tuple(epochs))


def _with_voters(batch: FileBatch, voters: VotersRecord | None) -> bytes:
    """A batch of the tail, with the new voters where it says who they are."""
    header = batch.header
    if not header.is_control:
        return batch.data
    logged = list(iter_records(batch.data))
    if not any(isinstance(one.record, VotersRecord | KRaftVersionRecord) for one in logged):
        return batch.data
    if voters is None:
        raise ExportError(
            f"{batch.file.path}: the record at offset {header.base_offset} says who votes, which static voters have "
            "not: leave the log out, or export dynamic voters"
        )
    records = [(voters if isinstance(one.record, VotersRecord) else one.record, one.version) for one in logged]
    return place_batch(control_batch(records, header.timestamp), header.base_offset, header.epoch)


def check_voters(voters: Iterable[ExportedVoter]) -> None:
    """Refuse voters of which one is there twice.

    Raises:
        ExportError: see above.
    """
    seen: set[int] = set()
    for voter in voters:
        if voter.id in seen:
            raise ExportError(f"voter {voter.id} is named twice")
        seen.add(voter.id)
