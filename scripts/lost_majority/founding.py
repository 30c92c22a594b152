"""Carrying out a recovery plan: new directories are made beside the old ones, checked, and put in their place.

Nothing is removed: what was in a voter's place is kept under ``<directory>.before-<generation>``. Every step may be the
last before a crash; started again it goes on. Until the last directory is in place some voters may be of the new
generation and some of an old one: they refuse each other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from quorate.metadata_log.directory.directory import (
    BALLAST_BYTES,
    BOOTSTRAP_NAME,
    LOCK_NAME,
    FormatPlan,
    ImportedFile,
    format_directory,
)
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, MetaProperties, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QuorumState
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.cluster.log_content import LogContent, checkpoint_content
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory, fingerprint, log_files, survey_kept
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.numbers import moved_on
from quorate.scripts.lost_majority.plan import PlannedVoter, RecoveryPlan, state_of
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.image_digest import digest_image

_MAKING: Final = ".founding"
_COPY_BYTES: Final = 1024 * 1024

#: Told of every step: done, of how many, and what it is.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class FoundedDirectory:
    """The outcome for one voter's directory."""

    node_id: int
    directory: str
    #: Where that is kept which was there before; None: nothing was.
    kept: str | None


def apply_plan(plan: RecoveryPlan, progress: Progress = lambda done, of, what: None) -> list[FoundedDirectory]:
    """Found the quorum anew. No process may run on any of its directories.

    Raises:
        RecoveryError: an input has changed, a directory is in use, the disk has no room, or what was made is not what
            was planned; every directory is as it was, or as the plan has it.
        StorageError, ReplayError: the source cannot be read.
        OSError: the disk failed.
    """
    made = [_is_of(_making(voter), plan) or _is_of(Path(voter.directory), plan) for voter in plan.voters]
    steps = 2 * len(plan.voters)
    with ExitStack() as stack:
        for voter in plan.voters:
            _require_place(plan, voter)
            _hold(Path(voter.directory), stack)
        if not all(made):
            _require_unchanged(plan)
            content = _content(plan)
            _require_room(plan, content)
            for number, voter in enumerate(plan.voters):
                progress(number, steps, f"making {voter.directory}")
                _make(plan, voter, content)
        found = []
        for number, voter in enumerate(plan.voters):
            progress(len(plan.voters) + number, steps, f"putting {voter.directory} in place")
            found.append(_put_in_place(plan, voter))
    if plan.local_cluster is not None:
        _update_local_cluster(plan, Path(plan.local_cluster))
    progress(steps, steps, "done")
    return found


def _making(voter: PlannedVoter) -> Path:
    return Path(voter.directory + _MAKING)


def kept_path(plan: RecoveryPlan, voter: PlannedVoter) -> Path:
    """The path at which the directory is kept that was in the voter's place."""
    return Path(f"{voter.directory}.before-{plan.generation}")


def _is_of(directory: Path, plan: RecoveryPlan) -> bool:
    """Whether a directory is one that this plan made, whole."""
    path = directory / META_PROPERTIES_NAME
    try:
        meta = decode_meta_properties(path.read_bytes(), str(path))
    except (OSError, CorruptState):
        return False
    return meta.generation == plan.generation and meta.directory_id in {
        uuid_from_text(voter.directory_id) for voter in plan.voters
    }


def _require_place(plan: RecoveryPlan, voter: PlannedVoter) -> None:
    """Move nothing aside but what was this controller's: a plan is a file, which somebody may have changed."""
    place = Path(voter.directory)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    path = place / META_PROPERTIES_NAME
    try:
        meta = decode_meta_properties(path.read_bytes(), str(path))
    except (OSError, CorruptState) as error:
        raise RecoveryError(
            f"{place} is no metadata directory ({error}): it is not moved aside; if it was one, move it yourself"
        ) from error
    if (meta.cluster_id, meta.node_id) != (plan.cluster_id, voter.node_id):
        raise RecoveryError(
            f"{place} is of controller {meta.node_id} of cluster {meta.cluster_id}, and the plan puts controller"
            f" {voter.node_id} of cluster {plan.cluster_id} there: it is not moved aside"
        )


def _hold(directory: Path, stack: ExitStack) -> None:
    """Keep every process away from a directory."""
    if not directory.is_dir():
        return
    try:
        stack.callback(RealDisk().lock(str(directory / LOCK_NAME)).release)
    except BlockingIOError as error:
        raise RecoveryError(f"{directory} is in use: stop its controller first") from error


def _require_unchanged(plan: RecoveryPlan) -> None:
    for one in plan.inputs:
        path = Path(one.path)
        if not path.exists():
            raise RecoveryError(f"{path} is gone since the plan was made: make a new plan")
        if fingerprint(path) != one.fingerprint:
            raise RecoveryError(f"{path} has changed since the plan was made: make a new plan")


def _require_room(plan: RecoveryPlan, content: LogContent) -> None:
    size = content.size + 2 * BALLAST_BYTES
    by_device: dict[int, list[Path]] = {}
    for voter in plan.voters:
        parent = Path(voter.directory).parent
        parent.mkdir(parents=True, exist_ok=True)
        by_device.setdefault(parent.stat().st_dev, []).append(parent)
    for parents in by_device.values():
        free = shutil.disk_usage(parents[0]).free
        if free < size * len(parents):
            raise RecoveryError(
                f"{parents[0]}: {size * len(parents):,} bytes are needed there, and {free:,} are free: nothing is"
                " removed to make room"
            )


# --- what a new directory is made of -----------------------------------------------------------------


def _content(plan: RecoveryPlan) -> LogContent:
    """The log of every new directory, the same bytes in each.

    There is always a checkpoint, if there is any state: whoever followed the log beyond its end takes it.
    """
    if plan.seed is None:
        image = moved_on(state_of(Path(plan.source), plan.state_offset))
        moved = image._replace(
            provenance=Provenance(plan.end_offset - 1, plan.generation, image.provenance.log_time_ms)
        )
        return checkpoint_content(moved, image.provenance.log_time_ms)
    found = log_files(plan.seed)
    files = tuple(ImportedFile(path.name, partial(_chunks, path, size)) for path, size in found)
    kept = LogContent(files, sum(size for _, size in found))
    last = _last_image(plan.seed)
    return kept if last is None else kept + checkpoint_content(last, last.provenance.log_time_ms)


def _last_image(seed: SurveyedDirectory) -> MetadataImage | None:
    """The last state for which there can be a checkpoint, at the end of a batch; None where there is one already."""
    if seed.first_segment is None or not seed.state_offset:
        return None
    end = seed.state_offset
    if end < seed.end_offset:
        entries = survey_kept(seed).entries
        end = entries.base_of(entries.containing(end))
    if not end or any(held.end_offset >= end for held in seed.checkpoints):
        return None
    return load_image(Path(seed.path), end)


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size and (chunk := file.read(min(size, _COPY_BYTES))):
            size -= len(chunk)
            yield chunk


def _make(plan: RecoveryPlan, voter: PlannedVoter, content: LogContent) -> None:
    target = _making(voter)
    if _is_of(target, plan) or _is_of(Path(voter.directory), plan):
        return
    if target.exists():
        shutil.rmtree(target)  # of an attempt that was cut short
    bootstrap = Path(plan.source) / BOOTSTRAP_NAME
    is_static = plan.kraft_version == 0
    format_directory(
        RealDisk(),
        str(target),
        FormatPlan(
            meta=MetaProperties(
                plan.cluster_id, voter.node_id, uuid_from_text(voter.directory_id), generation=plan.generation
            ),
            bootstrap=bootstrap.read_bytes() if bootstrap.is_file() else None,
            voters=None,
            quorum_state=QuorumState(
                leader_epoch=plan.generation,
                data_version=0 if is_static else 1,
                current_voters=tuple(sorted(one.node_id for one in plan.voters)) if is_static else (),
            ),
            imported=content.files,
        ),
    )
    _require_planned(plan, target)


def _require_planned(plan: RecoveryPlan, made: Path) -> None:
    """Read back what was made: the state must be the planned one before anything takes another's place."""
    if plan.end_offset and digest_image(load_image(made, plan.end_offset)).text != plan.digest:
        shutil.rmtree(made)
        raise RecoveryError(f"what was made of {plan.source} is not the planned state: nothing was put in place")


def _put_in_place(plan: RecoveryPlan, voter: PlannedVoter) -> FoundedDirectory:
    place, making, kept = Path(voter.directory), _making(voter), kept_path(plan, voter)
    if not _is_of(place, plan):
        if place.exists():
            if kept.exists():
                raise RecoveryError(f"{kept} is there already: move it elsewhere")
            os.rename(place, kept)
        os.rename(making, place)
        RealDisk().sync_directory(str(place.parent))
    return FoundedDirectory(voter.node_id, str(place), str(kept) if kept.exists() else None)


def _update_local_cluster(plan: RecoveryPlan, directory: Path) -> None:
    cluster = ClusterPlan.load(directory)
    if cluster is None:
        raise RecoveryError(f"{directory} holds no cluster any more: its controllers are in place, start them by hand")
    ids = {voter.node_id: voter.directory_id for voter in plan.voters}
    controllers = tuple(
        one.model_copy(update={"directory_id": ids[one.id]}) for one in cluster.controllers if one.id in ids
    )
    cluster.model_copy(update={"controllers": controllers}).save(directory)
