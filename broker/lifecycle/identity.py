"""A broker's identity: what it registers with.

A broker of ours keeps no data on a disk. What it must keep over restarts is read from its own registration in the log;
but for whether it left in good order, which the log does not always tell (``broker.lifecycle.last_run``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.broker.lifecycle.last_run import CRASHED
from quorate.controller.protocol import BrokerRegistrationRequest, Listener, SupportedFeature
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration

#: Levels of each feature that a broker of ours can follow: those of Kafka 4.3.1's brokers.
SUPPORTED_FEATURES: Final[tuple[tuple[str, int, int], ...]] = (
    ("metadata.version", 7, 30),
    ("kraft.version", 0, 1),
    ("transaction.version", 0, 2),
    ("group.version", 0, 1),
    ("eligible.leader.replicas.version", 0, 1),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
)
#: The metadata.version from which registrations hold log directories (3.7-IV2).
DIRECTORIES_LEVEL: Final = 17


class NotInTheImage(QuorateError):
    """A broker that should be played is not registered in the metadata that were imported."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address on which this process serves HTTP."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """A broker's registration, but for its epoch."""

    broker_id: int
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None
    directories: tuple[Uuid, ...]
    cordoned_directories: tuple[Uuid, ...]
    #: Epoch of the incarnation before, if it left in good order; -1 = it did not, or there was none.
    previous_broker_epoch: int
    #: Another incarnation than the one before: its directories are what they are now, whatever lay in others.
    begins_anew: bool

    def request(
        self, cluster_id: str, previous_epoch: int, failed_directories: Collection[Uuid] = ()
    ) -> BrokerRegistrationRequest:
        """The registration request.

        Args:
            previous_epoch: what this process was registered with before, -1 = nothing.
            failed_directories: log directories that this process has lost: they are not registered again.
        """
        return BrokerRegistrationRequest(
            broker_id=self.broker_id,
            cluster_id=cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=list(self.listeners),
            features=list(self.features),
            rack=self.rack,
            log_dirs=[one for one in self.directories if one not in failed_directories],
            cordoned_log_dirs=[one for one in self.cordoned_directories if one not in failed_directories],
            previous_broker_epoch=max(previous_epoch, self.previous_broker_epoch),
        )


def new_identity(
    broker_id: int,
    image: MetadataImage,
    listeners: Sequence[Listener],
    rack: str | None,
    new_uuid: Callable[[], Uuid],
    last_run: int | None = None,
    directory_count: int = 1,
) -> BrokerIdentity:
    """A new incarnation. Directories stay what the broker's last registration says, or its replicas would be lost.

    A directory that failed is out of the registration; another takes its place, as a new disk does.

    Args:
        directory_count: how many directories the broker has at least.
        last_run: epoch under which the broker left, or ``broker.lifecycle.last_run.CRASHED``; None: not known. Then the
        image
            tells: a predecessor that is fenced after a controlled shutdown has left in good order.
    """
    known = image.cluster.brokers.get(broker_id)
    if last_run is None:
        left = known is not None and known.in_controlled_shutdown and known.is_fenced
        last_run = known.epoch if known is not None and left else CRASHED
    directories = () if known is None else known.directories
    directories += tuple(new_uuid() for _ in range(directory_count - len(directories)))
    return BrokerIdentity(
        broker_id=broker_id,
        incarnation_id=new_uuid(),
        listeners=tuple(listeners),
        features=tuple(
            SupportedFeature(name=name, min_supported_version=least, max_supported_version=most)
            for name, least, most in SUPPORTED_FEATURES
        ),
        rack=rack,
        directories=directories,
        cordoned_directories=() if known is None else known.cordoned_directories,
        previous_broker_epoch=last_run,
        begins_anew=True,
    )


def imported_identity(
    broker_id: int, image: MetadataImage, new_uuid: Callable[[], Uuid], last_run: int | None = None
) -> BrokerIdentity:
    """Everything as it is registered in the image. One that is alive there goes on as the incarnation that it is.

    One that is not, or that has run here before, comes back as another, as every process that is started.

    Args:
        last_run: how its last run here ended, as for ``new_identity``; None: it has not run here. Then one that was
            about to leave in the image has left meanwhile.

    Raises:
        NotInTheImage: no such broker is registered.
    """
    known = image.cluster.brokers.get(broker_id)
    if known is None:
        registered = ", ".join(map(str, sorted(image.cluster.brokers))) or "none"
        raise NotInTheImage(f"broker {broker_id} is not registered in the metadata; registered are: {registered}")
    goes_on = last_run is None and not (known.is_fenced or known.in_controlled_shutdown)
    if last_run is None:
        last_run = known.epoch if known.in_controlled_shutdown else CRASHED
    return BrokerIdentity(
        broker_id=broker_id,
        incarnation_id=known.incarnation_id if goes_on else new_uuid(),
        listeners=_listeners(known),
        features=tuple(
            SupportedFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in known.supported_features
        ),
        rack=known.rack,
        directories=known.directories or (new_uuid(),),  # registered when the metadata know of directories
        cordoned_directories=known.cordoned_directories,
        previous_broker_epoch=last_run,
        begins_anew=not goes_on,
    )


def _listeners(known: BrokerRegistration) -> tuple[Listener, ...]:
    return tuple(
        Listener(name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol)
        for end in known.listeners
    )
