"""The controllers, as a broker uses them: the feed of each, and RPCs to whichever is active.

The one module that knows the controllers' client. It turns that client's answers and errors into the broker's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.controllers.feed import (
    BatchesAnswer,
    CheckpointAnswer,
    CheckpointGone,
    ControllerStatus,
    FeedForbidden,
    FeedPosition,
    FeedUnavailable,
    PositionRefused,
)
from quorate.broker.controllers.isr_proposals import IsrProposals
from quorate.broker.directories.directory_choice import Replica
from quorate.controller.api.errors import FeedOutOfRange, is_no_access
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NodeState
from quorate.controller.identity.secrets import ShownSecret
from quorate.controller.protocol import (
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    DirectoryReplicas,
    ReplicaInDirectory,
    TopicInDirectory,
)
from quorate.controller.protocol.altered_partitions import AlterPartitionColumns
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.metadata_log.ids import Uuid

#: A broker may have heard of a record from one controller before another has applied it.
_DIGEST_WAIT_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Controllers:
    """All controllers of a cluster."""

    feeds: Sequence[ControllerFeed]
    rpc: BrokerRpc


@asynccontextmanager
async def connect_controllers(
    urls: Sequence[str],
    shared_secret: ShownSecret,
    timeout_ms: float,
    broker_ids: Collection[int] = (),
    tls: TlsContexts | None = None,
    *,
    insecure: bool = False,
) -> AsyncIterator[Controllers]:
    """Feeds and RPCs, over connections that are made when they are needed and closed at the end.

    ``broker_ids``: the brokers of this process, by which the controllers tell their readers apart. ``insecure``: as for
    ``ControllerClient``.

    Raises:
        InvalidUrl: one of ``urls`` names no controller. SecretInPlaintext: as ``ControllerClient``.
    """

    def connect() -> ControllerClient:
        return ControllerClient(urls, shared_secret=shared_secret, tls=tls, timeout_ms=timeout_ms, insecure=insecure)

    # Connections of their own: one on which the feed was once read is no longer answered on the short way.
    async with connect() as reader, connect() as caller:
        feeds = [ControllerFeed(reader, url, timeout_ms, broker_ids) for url in reader.urls]
        yield Controllers(feeds, BrokerRpc(caller, timeout_ms))


class ControllerFeed:
    """The feed of one controller (``broker.controllers.feed.FollowedFeed``)."""

    def __init__(
        self,
        client: ControllerClient,
        url: str,
        timeout_ms: float,
        broker_ids: Collection[int],
        *,
        is_past: bool = False,
    ) -> None:
        """``timeout_ms``: for one piece of a checkpoint; fetches of batches are bounded by their wait.

        ``is_past``: for whoever reads history and follows nothing (``ControllerClient.fetch_batches``).
        """
        self._client = client
        self._url = url
        self._timeout_ms = timeout_ms
        self._broker_ids = broker_ids
        self._is_past = is_past

    @property
    def name(self) -> str:
        """Its URL."""
        return self._url

    async def fetch_batches(self, position: FeedPosition, wait_ms: int, bytes_max: int) -> BatchesAnswer:
        """See ``FollowedFeed``."""
        try:
            answer = await self._client.fetch_batches(
                self._url, *position, wait_ms, bytes_max, self._broker_ids, is_past=self._is_past
            )
        except FeedOutOfRange as error:
            raise PositionRefused(error.message, is_diverging=error.is_diverging) from error
        except QuorateError as error:
            raise self._unavailable(error) from error
        return BatchesAnswer(_status(answer.node), answer.data)

    async def digest_at(self, offset: int) -> str:
        """See ``broker.metadata.digest_watch.DigestSource``."""
        try:
            return await self._client.digest_of(self._url, offset, wait_ms=_DIGEST_WAIT_MS)
        except QuorateError as error:
            raise FeedUnavailable(f"{self._url}: {error}") from error

    async def fetch_checkpoint(self, wanted: CheckpointId | None, position: int, bytes_max: int) -> CheckpointAnswer:
        """See ``FollowedFeed``."""
        try:
            piece = await self._client.fetch_checkpoint(self._url, wanted, position, bytes_max, self._timeout_ms)
        except ApiError as error:
            if error.code is ErrorCode.SNAPSHOT_NOT_FOUND:
                raise CheckpointGone(error.message) from error
            raise self._unavailable(error) from error
        except QuorateError as error:
            raise self._unavailable(error) from error
        chunk = CheckpointChunk(CheckpointId(piece.end_offset, piece.epoch), piece.position, piece.data, piece.crc)
        return CheckpointAnswer(_status(piece.node), piece.size, chunk)

    def _unavailable(self, error: QuorateError) -> FeedUnavailable:
        is_forbidden = isinstance(error, ApiError) and is_no_access(error)
        return (FeedForbidden if is_forbidden else FeedUnavailable)(f"{self._url}: {error}")


def _status(node: NodeState) -> ControllerStatus:
    return ControllerStatus(node.node_id, node.cluster_id, node.active_id, node.epoch, node.high_watermark)


class BrokerRpc:
    """RPCs to the active controller, through any (``broker.controllers.controller_rpc.ControllerRpc``)."""

    def __init__(self, client: ControllerClient, timeout_ms: float) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        """See ``ControllerRpc``."""
        return await self._client.register_broker(request, self._timeout_ms)

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        """See ``ControllerRpc``."""
        return await self._client.broker_heartbeat(request, self._timeout_ms)

    async def alter_partition(self, broker_epoch: int, proposals: IsrProposals) -> NDArray[np.int16]:
        """See ``ControllerRpc``."""
        columns = AlterPartitionColumns(
            topic_ids=proposals.topic_ids,
            partition_ids=proposals.partition_ids,
            leader_epochs=proposals.leader_epochs,
            partition_epochs=proposals.partition_epochs,
            # A leader that asks for an ISR has recovered: there are no data that it would still have to check.
            leader_recovery_states=np.zeros(len(proposals), np.int8),
            new_isr=proposals.isr,
            new_isr_epochs=proposals.isr_broker_epochs,
        )
        altered = await self._client.alter_partition_columns(proposals.leader, broker_epoch, columns, self._timeout_ms)
        if len(altered.error_codes) != len(proposals):
            raise NoAnswer(f"{len(altered.error_codes)} outcomes for {len(proposals)} partitions")
        return altered.error_codes

    async def assign_replicas_to_dirs(
        self, broker_id: int, broker_epoch: int, directories: Mapping[Replica, Uuid]
    ) -> Mapping[Replica, ErrorCode]:
        """See ``ControllerRpc``."""
        numbers: dict[Uuid, dict[Uuid, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (topic_id, number), directory in directories.items():
            numbers[directory][topic_id].append(number)
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            directories=[
                DirectoryReplicas(
                    id=directory,
                    topics=[
                        TopicInDirectory(
                            topic_id=topic_id, partitions=[ReplicaInDirectory(partition_index=one) for one in held]
                        )
                        for topic_id, held in topics.items()
                    ],
                )
                for directory, topics in numbers.items()
            ],
        )
        reply = await self._client.assign_replicas_to_dirs(request, self._timeout_ms)
        return {
            (topic.topic_id, partition.partition_index): partition.error_code
            for directory in reply.directories
            for topic in directory.topics
            for partition in topic.partitions
        }
