"""A client of the controllers: tries them in turn, and never repeats what may have been carried out.

For the command line, brokers and tests. Any controller takes any request, so one that answers is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeVar

from pydantic import BaseModel

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.api.feed_replies import FeedSessionsReply
from quorate.controller.api.resources import (
    BrokerReply,
    BrokersReply,
    ClusterReply,
    ControllersReply,
    DigestReply,
    PartitionsReply,
    QuorumReply,
    TopicReply,
    TopicsReply,
)
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.access import AccessClient
from quorate.controller.client.answers import AnswerClient
from quorate.controller.client.attempts import Sender
from quorate.controller.client.audit import AuditClient
from quorate.controller.client.checkpoints import CheckpointClient
from quorate.controller.client.connection import Connection, NoAnswer, NodeState, Request
from quorate.controller.client.feed_answers import Batches, CheckpointPiece, batches, batches_request, checkpoint_piece
from quorate.controller.client.labels import LabelClient
from quorate.controller.client.login import PasswordLogin
from quorate.controller.client.past_attempts import sender_to
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.targets import topic_part
from quorate.controller.client.tokens import TokenClient
from quorate.controller.client.ways import Ways
from quorate.controller.identity.seals import Seal
from quorate.controller.protocol import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    UnregisterBrokerResponse,
)
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    ResourceTypeName,
)
from quorate.controller.protocol.controllers import ControllerRegistrationRequest, ControllerRegistrationResponse
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse
from quorate.controller.protocol.features import DescribeFeaturesResponse, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorate.metadata_log.arguments import checked_calls
from quorate.snapshots.digest_form import DIGEST_FORM

if TYPE_CHECKING:
    # Of all that use a client only brokers need columns and numpy: commands should start fast.
    from quorate.controller.protocol.altered_partitions import AlteredPartitions, AlterPartitionColumns

DEFAULT_TIMEOUT_MS: Final = 30_000.0

R = TypeVar("R", bound=BaseModel)


@checked_calls
class ControllerClient:
    """Use as an asynchronous context manager; closed, it is not opened again: ``ClientClosed``.

    Every method raises ``ApiError`` and its kinds: ``NotController`` (``Unreachable``) when no active controller was
    found in time, ``OutcomeUnknown`` when a change was sent and not answered.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        shared_secret: bytes | Callable[[], bytes] | None = None,
        tls: TlsContexts | None = None,
        seal: Seal | None = None,
        login: PasswordLogin | None = None,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
        principal: str | None = None,
        client_id: str | None = None,
        absent_ms: float | None = None,
        at: str | None = None,
        sender: Sender | None = None,
        insecure: bool = False,
        sockets: Mapping[str, str] | None = None,
    ) -> None:
        """``urls``: ``host:port``, URLs or ``unix:PATH``s of controllers. ``principal``: in whose name to ask.

        ``shared_secret``: it, or a token: bytes without a line's end (``read_secret``), or what gives them each time.
        ``client_id``: the program's name for itself, by which client quotas know it.
        ``tls``: gives the context with which TLS is spoken, as it is by who is named by ``host:port`` then.
        ``login``: with what to log in, over TLS or to this machine only; it is renewed while the client is used.
        ``absent_ms``: give up when for so long no majority took a connection (``Attempts``); None: when the time is up.
        ``at``: the moment whose state is read (``snapshots.checkpoints.moments``); None: the newest.
        ``sender``: who answers instead of controllers, of one state. ``sockets``: paths of Unix sockets, by URL.
        ``insecure``: ``shared_secret`` is sent by plain HTTP, too, to other machines.

        Raises:
            SecretInPlaintext: it would be, and is not to be (asked later for another controller, methods raise it).
            InvalidUrl, InvalidArgument. ApiError: INVALID_REQUEST, no such principal or client id can be.
        """
        self._session = PendingSession(shared_secret, principal, seal, client_id)
        self._ways = Ways(self._session, tls, login, sockets, is_secret=bool(shared_secret) and not insecure)
        self.urls: tuple[str, ...] = self._ways.base_urls(urls, are_needed=sender is None)
        self._timeout_ms = timeout_ms
        self._at = at
        self._is_still = at is not None or sender is not None
        self.sender = sender or sender_to(self.urls, self._connect, absent_ms, is_past=at is not None)
        self.access = AccessClient(self._read, self._write)
        self.tokens = TokenClient(self._read, self._write)
        self.labels = LabelClient(self._read, self._write)
        self.answers = AnswerClient(self._read)
        self.checkpoints = CheckpointClient(self._connect, timeout_ms)
        self.audit = AuditClient(self._connect)

    async def __aenter__(self) -> Self:
        self._session.check_open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, for good."""
        await self._session.close()

    def _connect(self, url: str) -> Connection:  # a method: the simulation puts its wire in its place
        return self._ways.connect(url)

    # --- the cluster ---------------------------------------------------------------------------------

    async def status(self, *, explain: bool = False) -> StatusReply:
        """Verdict, voters, brokers, partitions."""
        return await self._read("/v1/status", StatusReply, {"explain": str(explain).lower()})

    async def status_of(self, url: str, timeout_ms: float, *, explain: bool = False) -> StatusReply:
        """The cluster as one controller itself sees it, and why it is so. Raises NotSent, NoAnswer, ApiError."""
        request = Request("GET", "/v1/status", timeout_ms, {"local": "true", "explain": str(explain).lower()})
        return (await self._connect(url).send(request)).model(StatusReply)

    async def quorum_of(self, url: str, timeout_ms: float) -> tuple[NodeState, QuorumReply]:
        """One controller, and the quorum as it sees it. Raises NotSent, NoAnswer, ApiError."""
        answer = await self._connect(url).send(Request("GET", "/v1/quorum", timeout_ms, {"local": "true"}))
        return answer.node_state(), answer.model(QuorumReply)

    async def digest_of(self, url: str, offset: int, **parameters: int | str) -> str:
        """Digest of one controller's or broker process's state at an offset; ``parameters``: further ones of the route.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the state there is not kept, or not reached.
            NotSent. NoAnswer: none, or one of another form.
        """
        asked_for = {"offset": offset, **parameters}
        request = Request("GET", "/v1/image/digest", self._timeout_ms, asked_for, is_for_brokers=True)
        reply = (await self._connect(url).send(request)).model(DigestReply)
        if reply.form != DIGEST_FORM:
            raise NoAnswer(f"{url} makes digests of form {reply.form}, not {DIGEST_FORM}")
        return reply.digest

    async def describe_cluster(self) -> ClusterReply:
        """The cluster in a few numbers."""
        return await self._read("/v1/cluster", ClusterReply)

    async def describe_quorum(self) -> QuorumReply:
        """The controllers."""
        return await self._read("/v1/quorum", QuorumReply)

    async def describe_controllers(self) -> ControllersReply:
        """The quorum's controllers, and what they have registered."""
        return await self._read("/v1/controllers", ControllersReply)

    async def register_controller(self, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        """Register a controller; the same registration may be sent again."""
        return await self._rpc("controller-rpc/register", request, ControllerRegistrationResponse, None)

    async def describe_brokers(self) -> BrokersReply:
        """All registered brokers."""
        return await self._read("/v1/brokers", BrokersReply)

    async def describe_broker(self, broker_id: int) -> BrokerReply:
        """One registered broker."""
        return await self._read(f"/v1/brokers/{broker_id}", BrokerReply)

    async def unregister_broker(self, broker_id: int) -> UnregisterBrokerResponse:
        """Remove a broker's registration."""
        request = Request("DELETE", f"/v1/brokers/{broker_id}", self._timeout_ms)
        return (await self.sender.send(request, is_repeatable=False)).model(UnregisterBrokerResponse)

    # --- topics and partitions -----------------------------------------------------------------------

    async def list_topics(self, *, after: str = "", limit: int = 1000, **wanted: str | int) -> TopicsReply:
        """A page of the topics, by name; ``wanted``: further parameters of the route."""
        return await self._read("/v1/topics", TopicsReply, {"after": after, "limit": limit, **wanted})

    async def list_partitions(self, *, after: str = "", limit: int = 1000, **wanted: str | int) -> PartitionsReply:
        """A page of the partitions, by topic and number; ``wanted``: further parameters of the route."""
        return await self._read("/v1/partitions", PartitionsReply, {"after": after, "limit": limit, **wanted})

    async def describe_topic(self, name: str, *, is_linearizable: bool = False) -> TopicReply:
        """One topic with its partitions."""
        parameters = {"consistency": "linearizable" if is_linearizable else "committed"}
        return await self._read(f"/v1/topics/{topic_part(name)}", TopicReply, parameters)

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Create topics."""
        return await self._write("/v1/topics", request, CreateTopicsResponse)

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Give topics more partitions."""
        return await self._write("/v1/topics/partitions", request, CreatePartitionsResponse)

    async def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Delete topics by id."""
        return await self._write("/v1/topics/delete", request, DeleteTopicsResponse)

    async def delete_topic(self, name: str) -> DeleteTopicsResponse:
        """Delete a topic by name."""
        request = Request("DELETE", f"/v1/topics/{topic_part(name)}", self._timeout_ms)
        return (await self.sender.send(request, is_repeatable=False)).model(DeleteTopicsResponse)

    async def describe_topic_deletions(self) -> DescribeTopicDeletionsResponse:
        """Deleted topics of which brokers still have replicas."""
        return await self._read("/v1/topic-deletions", DescribeTopicDeletionsResponse)

    async def list_partition_reassignments(
        self, *, is_linearizable: bool = False
    ) -> ListPartitionReassignmentsResponse:
        """Open reassignments."""
        parameters = {"consistency": "linearizable" if is_linearizable else "committed"}
        return await self._read("/v1/partition-reassignments", ListPartitionReassignmentsResponse, parameters)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start or cancel reassignments."""
        return await self._write("/v1/partition-reassignments", request, AlterPartitionReassignmentsResponse)

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Elect leaders now."""
        return await self._write("/v1/leader-elections", request, ElectLeadersResponse)

    # --- configs and features ------------------------------------------------------------------------

    async def describe_configs(
        self, resource_type: ResourceTypeName, resource_name: str = "", *, is_linearizable: bool = False
    ) -> DescribeConfigsResult:
        """The configs of one resource; of the broker "": the default of all brokers."""
        parameters = {"resource_type": resource_type, "resource_name": resource_name}
        parameters["consistency"] = "linearizable" if is_linearizable else "committed"
        return await self._read("/v1/configs", DescribeConfigsResult, parameters)

    async def incremental_alter_configs(self, request: IncrementalAlterConfigsRequest) -> AlterConfigsResponse:
        """Change configs one by one."""
        return await self._write("/v1/configs", request, AlterConfigsResponse)

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """Replace all configs of resources."""
        return await self._write("/v1/configs/replace", request, AlterConfigsResponse)

    async def describe_features(self, *, is_linearizable: bool = False) -> DescribeFeaturesResponse:
        """Feature levels."""
        parameters = {"consistency": "linearizable" if is_linearizable else "committed"}
        return await self._read("/v1/features", DescribeFeaturesResponse, parameters)

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        """Raise or lower feature levels, all or none."""
        return await self._write("/v1/features", request, UpdateFeaturesResponse)

    # --- broker RPCs: msgpack, and repeatable, for each carries the epoch or incarnation it is about ----

    async def register_broker(
        self, request: BrokerRegistrationRequest, timeout_ms: float | None = None
    ) -> BrokerRegistrationResponse:
        """Register a broker; the same incarnation again is an amendment."""
        return await self._rpc("broker-rpc/register", request, BrokerRegistrationResponse, timeout_ms)

    async def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, timeout_ms: float | None = None
    ) -> BrokerHeartbeatResponse:
        """Say that a broker is alive."""
        return await self._rpc("broker-rpc/heartbeat", request, BrokerHeartbeatResponse, timeout_ms)

    async def alter_partition(
        self, request: AlterPartitionRequest, timeout_ms: float | None = None
    ) -> AlterPartitionResponse:
        """Ask for other ISRs; a repeated request is answered by the epochs it carries."""
        return await self._rpc("broker-rpc/alter-partition", request, AlterPartitionResponse, timeout_ms)

    async def alter_partition_columns(
        self, broker_id: int, broker_epoch: int, columns: AlterPartitionColumns, timeout_ms: float | None = None
    ) -> AlteredPartitions:
        """``alter_partition`` for thousands of partitions, sent once: a refusal leaves no copy on its way."""
        from quorate.controller.api.columns import AlterPartitionColumnsResponse, outcome_of, request_of

        path, body = "/v1/broker-rpc/alter-partition-columns", request_of(broker_id, broker_epoch, columns)
        request = Request("POST", path, timeout_ms or self._timeout_ms, body=body, as_msgpack=True)
        answer = await self.sender.send(request, is_repeatable=False)
        return outcome_of(answer.model(AlterPartitionColumnsResponse))

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, timeout_ms: float | None = None
    ) -> AssignReplicasToDirsResponse:
        """Say in which directories replicas lie."""
        return await self._rpc("broker-rpc/assign-replicas-to-dirs", request, AssignReplicasToDirsResponse, timeout_ms)

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, timeout_ms: float | None = None
    ) -> AllocateProducerIdsResponse:
        """Get a block of producer ids; one whose answer is lost stays unused."""
        return await self._rpc("broker-rpc/allocate-producer-ids", request, AllocateProducerIdsResponse, timeout_ms)

    # --- the feed of one controller ------------------------------------------------------------------

    async def fetch_batches(
        self,
        url: str,
        offset: int,
        epoch: int,
        wait_ms: int,
        max_bytes: int,
        broker_ids: Collection[int] = (),
        *,
        is_past: bool = False,
    ) -> Batches:
        """Committed batches from ``offset`` on, from one controller; empty when none came within ``wait_ms``.

        ``broker_ids``: the brokers for which it is asked, so that the controller can tell readers apart.
        ``is_past``: also from before the log's start, where the controller's files still reach back to offset 0.

        Raises:
            FeedOutOfRange: take a checkpoint. ApiError, NotSent, NoAnswer: this controller does not serve now.
        """
        request = batches_request(offset, epoch, wait_ms, max_bytes, broker_ids, is_past=is_past)
        return batches(await self._connect(url).send(request))

    async def feed_sessions(self, url: str, timeout_ms: float = 10_000) -> FeedSessionsReply:
        """The readers of one controller's feed; raises as ``fetch_batches``, without FeedOutOfRange."""
        return (await self._connect(url).send(Request("GET", "/v1/feed-sessions", timeout_ms))).model(FeedSessionsReply)

    async def fetch_checkpoint(
        self, url: str, covers: tuple[int, int] | None, position: int, max_bytes: int, timeout_ms: float = 10_000
    ) -> CheckpointPiece:
        """A piece of a checkpoint of one controller: of the newest, or of the one that covers (end offset, epoch).

        Raises:
            ApiError: SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE. NotSent, NoAnswer: this controller does not serve now.
        """
        parameters = {"position": position, "max_bytes": max_bytes}
        if covers is not None:
            parameters |= {"end_offset": covers[0], "epoch": covers[1]}
        request = Request("GET", "/v1/metadata/checkpoint", timeout_ms, parameters)
        return checkpoint_piece(await self._connect(url).send(request))

    # --- sending -------------------------------------------------------------------------------------

    async def _read(
        self, path: str, reply: type[R], given: Mapping[str, str | int] | None = None, body: BaseModel | None = None
    ) -> R:
        wanted = dict(given or {})
        if self._is_still:  # such a state has nothing to be fresh
            wanted.pop("consistency", None)
        if self._at is not None:
            wanted["at"] = self._at
        request = Request("GET" if body is None else "POST", path, self._timeout_ms, wanted, body=body)
        return (await self.sender.send(request, is_repeatable=True)).model(reply)

    async def _write(self, path: str, body: BaseModel, reply: type[R]) -> R:
        request = Request("POST", path, self._timeout_ms, body=body)
        is_repeatable = bool(getattr(body, "validate_only", False))  # it changes nothing
        return (await self.sender.send(request, is_repeatable=is_repeatable)).model(reply)

    async def _rpc(self, name: str, body: BaseModel, reply: type[R], timeout_ms: float | None) -> R:
        request = Request("POST", f"/v1/{name}", timeout_ms or self._timeout_ms, body=body, as_msgpack=True)
        return (await self.sender.send(request, is_repeatable=True)).model(reply)
