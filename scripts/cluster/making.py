"""Making a local cluster: a fresh one, or a twin of another cluster's metadata.

Everything is made under ``.making`` first and moved into place at the end; ``cluster.json`` comes last. So an
interrupted making leaves nothing that looks like a cluster.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.directory.directory import FormatPlan, ImportedFile, format_directory
from quorate.metadata_log.directory.meta_properties import MetaProperties
from quorate.metadata_log.directory.quorum_state import QuorumState
from quorate.metadata_log.directory.reader import LogFile, find_files
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.ids import Uuid, uuid_from_text
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, SECRET_NAME
from quorate.scripts.cluster.formatting import FoundingVoter, founding_plan, new_id
from quorate.scripts.cluster.plan import (
    PLAN_NAME,
    SOCKET_NAME,
    ClusterError,
    ClusterPlan,
    PlannedBrokers,
    PlannedController,
)
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.cluster.source_state import source_cluster_id, source_quorum_state
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver, TellPassedOver
from quorate.snapshots.image.image import MetadataImage

_MAKING: Final = ".making"
_LOGS: Final = "logs"
_CONTROLLER_PREFIX: Final = "controller-"
_BROKER_PREFIX: Final = "broker-"
FRESH_CONTROLLER_IDS: Final = (1, 2, 3)
FIRST_BROKER_ID: Final = 11
#: A twin has three controllers; these if the source's are not three.
TWIN_CONTROLLER_IDS: Final = (3000, 3001, 3002)
#: Brokers of a twin up to this number get a process each; more share one.
SEPARATE_BROKERS_MAX: Final = 8
_COPY_BYTES: Final = 1024 * 1024
#: Looks at what is about to be made.
Approve = Callable[[ClusterPlan], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports, handed out in order."""

    take: Callable[[], int]

    @classmethod
    def from_base(cls, base: int) -> Ports:
        """``base``, ``base + 1``, ..."""
        numbers = iter(range(base, 65_536))
        return cls(lambda: next(numbers))

    @classmethod
    def of(cls, ports: Sequence[int]) -> Ports:
        """These."""
        numbers = iter(ports)
        return cls(lambda: next(numbers))


def controller_directory(directory: Path, controller: PlannedController) -> Path:
    """Metadata directory of one controller."""
    return directory / f"{_CONTROLLER_PREFIX}{controller.id}"


def make_fresh(
    directory: Path,
    ports: Ports,
    controller_count: int,
    broker_count: int,
    approve: Approve = lambda plan: None,
    *,
    is_secured: bool = False,
) -> ClusterPlan:
    """A new cluster, empty but for the features that Kafka 4.3.1 starts with.

    Args:
        is_secured: whether it gets certificates, and lets in whom it knows by them.
        approve: called before anything is written; what it raises keeps the cluster from being made.

    Raises:
        ClusterError: the directory holds something else.
    """
    controllers = plan_controllers(FRESH_CONTROLLER_IDS[:controller_count], ports)
    racks = "abc"
    brokers = tuple(
        PlannedBrokers(ids=(FIRST_BROKER_ID + n,), http_port=ports.take(), racks=(racks[n % len(racks)],))
        for n in range(broker_count)
    )
    plan = ClusterPlan(cluster_id=new_id(), controllers=controllers, brokers=brokers, is_secured=is_secured)
    approve(plan)
    make_planned(directory, plan)
    return plan


def make_planned(directory: Path, plan: ClusterPlan) -> None:
    """The directories of a new cluster that was planned.

    Raises:
        ClusterError: the directory holds something else.
    """
    voters = [FoundingVoter(one.id, one.directory_id, LOOPBACK, one.quorum_port) for one in plan.controllers]
    _make(directory, plan, lambda one: founding_plan(plan.cluster_id, one.id, voters, plan.kraft_version))


def make_twin(
    directory: Path,
    source: Path,
    ports: Ports,
    brokers: str,
    tell: TellPassedOver = lambda passed_over: None,
    approve: Approve = lambda plan: None,
    *,
    is_secured: bool = False,
) -> ClusterPlan:
    """A cluster that starts from another one's metadata, under a new cluster id; a checkpoint passed over stays behind.

    Args:
        brokers: which of the imported brokers are played: ``live`` (not fenced), ``all`` or ``none``.
        approve, is_secured: as for ``make_fresh``; the source was read by then, and is read once more afterwards.

    Raises:
        ClusterError: the directory holds something else, or the source has no state to start from.
        StorageError, ReplayError, ImageNotAvailable: the source cannot be read.
    """
    passed_over: list[PassedOver] = []
    image = load_image(source, tell=passed_over.append)
    for one in passed_over:
        tell(one)
    state = source_quorum_state(source)
    plan = ClusterPlan(
        cluster_id=new_id(),
        controllers=plan_controllers(twin_controller_ids(image, state), ports),
        brokers=plan_twin_brokers(image, brokers, ports),
        kraft_version=image.kraft.version,
        source_cluster_id=source_cluster_id(source),
        source=str(source.resolve()),
        is_secured=is_secured,
    )
    approve(plan)
    epoch = max(image.provenance.epoch, state.leader_epoch if state is not None else 0)
    imported = tuple(_imported(_taken(source, passed_over), image))
    _make(directory, plan, partial(format_plan, plan, bootstrap=None, epoch=epoch, imported=imported))
    return plan


# --- what is planned ---------------------------------------------------------------------------------


def plan_controllers(ids: Iterable[int], ports: Ports) -> tuple[PlannedController, ...]:
    """Controllers with these ids, in new directories."""
    return tuple(
        PlannedController(id=node, quorum_port=ports.take(), http_port=ports.take(), directory_id=new_id())
        for node in ids
    )


def plan_twin_brokers(image: MetadataImage, which: str, ports: Ports) -> tuple[PlannedBrokers, ...]:
    """Those of the imported brokers that are played: ``live`` (not fenced), ``all`` or ``none``."""
    ids = sorted(b.id for b in image.cluster.brokers.values() if which == "all" or not b.is_fenced)
    if which == "none" or not ids:
        return ()
    groups = [(broker,) for broker in ids] if len(ids) <= SEPARATE_BROKERS_MAX else [tuple(ids)]
    return tuple(PlannedBrokers(ids=group, http_port=ports.take(), is_twin=True) for group in groups)


def twin_controller_ids(
    image: MetadataImage, state: QuorumState | None, count: int = len(TWIN_CONTROLLER_IDS)
) -> tuple[int, ...]:
    """The source's voters if they are that many, else new ones."""
    ids: tuple[int, ...] = ()
    if image.kraft.voters is not None:
        ids = tuple(sorted(voter.voter_id for voter in image.kraft.voters.voters))
    elif state is not None:
        ids = tuple(sorted(state.current_voters))
    return ids if len(ids) == count else tuple(range(TWIN_CONTROLLER_IDS[0], TWIN_CONTROLLER_IDS[0] + count))


def _taken(source: Path, passed_over: Sequence[PassedOver]) -> Iterator[LogFile]:
    damaged = {one.path for one in passed_over}
    return (file for file in find_files(source) if str(file.path) not in damaged)


def _imported(files: Iterable[LogFile], image: MetadataImage) -> Iterator[ImportedFile]:
    for file in files:
        name = file.path.name
        if file.is_checkpoint and file.offset is None:
            provenance = image.provenance
            name = checkpoint_name(CheckpointId(provenance.end_offset, provenance.epoch))
        yield ImportedFile(name, partial(_chunks, file.path))


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_COPY_BYTES):
            yield chunk


# --- what is written ---------------------------------------------------------------------------------


def format_plan(
    plan: ClusterPlan,
    controller: PlannedController,
    *,
    bootstrap: bytes | None,
    epoch: int,
    imported: tuple[ImportedFile, ...],
    generation: int = 0,
) -> FormatPlan:
    """The directory of one controller of a plan, a voter in ``epoch``, that starts from the state of another log."""
    directory_id: Uuid = uuid_from_text(controller.directory_id)
    is_static = plan.kraft_version == 0
    return FormatPlan(
        meta=MetaProperties(plan.cluster_id, controller.id, directory_id, plan.source_cluster_id, generation),
        bootstrap=bootstrap,
        voters=None,
        quorum_state=QuorumState(
            leader_epoch=epoch,
            data_version=0 if is_static else 1,
            current_voters=tuple(c.id for c in plan.controllers) if is_static else (),
        ),
        imported=imported,
    )


def _make(directory: Path, plan: ClusterPlan, format_plan: Callable[[PlannedController], FormatPlan]) -> None:
    is_new = not directory.exists()
    _clear_leftovers(directory)
    try:
        _write(directory, plan, format_plan)
    except BaseException:  # also Ctrl-C: what is there is of no use
        remove(directory)
        if is_new:
            directory.rmdir()
        raise


def _write(directory: Path, plan: ClusterPlan, format_plan: Callable[[PlannedController], FormatPlan]) -> None:
    making = directory / _MAKING
    making.mkdir(parents=True)
    disk = RealDisk()
    for controller in plan.controllers:
        path = making / controller_directory(directory, controller).name
        format_directory(disk, str(path), format_plan(controller))
    make_certificates(making, plan)
    for path in making.iterdir():
        os.rename(path, directory / path.name)
    making.rmdir()
    plan.save(directory)


def make_certificates(directory: Path, plan: ClusterPlan) -> None:
    """Make certificates and a secret for a cluster that is secured, and nothing for another.

    Raises:
        CertificateError: there is something already. OSError: the disk failed.
    """
    if plan.is_secured:
        # Of use to few who import this module, and slow to load.
        from quorate.scripts.certificates.local_authority import make_local

        controllers = (one.id for one in plan.controllers)
        make_local(directory, plan.cluster_id, controllers, (one.ids for one in plan.brokers))


def _clear_leftovers(directory: Path) -> None:
    """Remove what an interrupted making left; refuse everything else."""
    if not directory.exists():
        return
    require_disposable(directory)
    remove(directory)


def logs_directory(directory: Path) -> Path:
    """The directory for the logs of the processes of a cluster's directory."""
    return directory / _LOGS


def remove(directory: Path) -> None:
    """Throw away what a cluster left in its directory, the logs of its processes included.

    Raises:
        ClusterError: there is something else in it; nothing was removed.
    """
    _require_ours(directory)
    # First: a half-removed cluster must not look like one, nor like copies of one.
    making = directory / _MAKING
    making.mkdir(exist_ok=True)
    (directory / PLAN_NAME).unlink(missing_ok=True)
    for path in directory.iterdir():
        if path == making:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.rmtree(making)


def require_disposable(directory: Path) -> set[str]:
    """The names in a directory in which a cluster may be thrown away.

    Raises:
        ClusterError: one of them is no part of a cluster, or they may be copies of another one's.
    """
    names = _require_ours(directory)
    if names - {_LOGS} and not names & {PLAN_NAME, _MAKING}:
        raise ClusterError(
            f"{directory} holds controllers but no {PLAN_NAME}: they may be copies of another cluster's; remove them "
            "yourself, or use another --dir"
        )
    return names


def _require_ours(directory: Path) -> set[str]:
    """The names in a directory.

    Raises:
        ClusterError: one of them is no part of a cluster.
    """
    names = {path.name for path in directory.iterdir()}
    known = (_MAKING, _LOGS, SOCKET_NAME, CERTIFICATES_NAME, SECRET_NAME)
    ours = (_CONTROLLER_PREFIX, _BROKER_PREFIX, PLAN_NAME)
    foreign = {n for n in names if n not in known and not n.startswith(ours)}
    if foreign:
        raise ClusterError(f"{directory} holds {min(foreign)!r}, which is no part of a cluster: use another --dir")
    return names
