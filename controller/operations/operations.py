"""One method per request: the decision it stands for, run through the controller.

The only way in for HTTP. Soft state (broker sessions) is read by decisions and changed here, before (contact) and after
(everything else) they are taken.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.brokers.controller_registration import decide_register_controller
from quorate.controller.brokers.fencing import HeartbeatDecision, apply_heartbeat, decide_broker_heartbeat
from quorate.controller.brokers.producer_ids import decide_allocate_producer_ids
from quorate.controller.brokers.registration import (
    apply_registration,
    apply_unregistration,
    decide_register_broker,
    decide_unregister_broker,
)
from quorate.controller.brokers.session_order import Session
from quorate.controller.brokers.steady_heartbeats import SteadyBroker, standing_or_none, steady_heartbeat
from quorate.controller.configs.alter_configs import decide_alter_configs, decide_incremental_alter_configs
from quorate.controller.configs.description import describe_configs
from quorate.controller.configs.features import decide_update_features, describe_features
from quorate.controller.configs.labels import decide_alter_labels
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.access import AccessOperations
from quorate.controller.operations.active_role import ActiveRole
from quorate.controller.operations.tokens import TokenOperations
from quorate.controller.partitions.alter_partition import decide_alter_partition, decide_alter_partition_columns
from quorate.controller.partitions.directory_assignments import decide_assign_replicas_to_dirs
from quorate.controller.partitions.elections import decide_elect_leaders
from quorate.controller.partitions.replica_deletions import DeletionCounts
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
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorate.controller.protocol.altered_partitions import AlteredPartitions, AlterPartitionColumns
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
)
from quorate.controller.protocol.controllers import ControllerRegistrationRequest, ControllerRegistrationResponse
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse
from quorate.controller.protocol.features import DescribeFeaturesResponse, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorate.controller.protocol.labels import AlterLabelsRequest, AlterLabelsResponse
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from quorate.controller.topics.topics import (
    check_deletion_enabled,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
    topic_named,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import MetadataImage


class Operations:
    """Requests of one controller process. Every method raises ``ApiError`` and its kinds."""

    def __init__(self, controller: QuorumController, role: ActiveRole) -> None:
        self._controller = controller
        self._role = role
        self._config = role.config
        #: Client quotas, SCRAM credentials, ACLs.
        self.access = AccessOperations(controller, role)
        self.tokens = TokenOperations(controller, role)

    def over(self, controller: QuorumController) -> Operations:
        """The same of another controller, with the same settings."""
        return Operations(controller, self._role)

    # --- topics and partitions -----------------------------------------------------------------------

    async def create_topics(self, request: CreateTopicsRequest, timeout_ms: float) -> CreateTopicsResponse:
        """Create topics, each for itself, all in one batch."""
        role = self._role
        return await self._controller.append_write_event(
            "create_topics",
            lambda c: decide_create_topics(c.image, self._config, request, role.random, role.new_id, role.quota_of(c)),
            timeout_ms,
            role.charge,
        )

    async def create_partitions(self, request: CreatePartitionsRequest, timeout_ms: float) -> CreatePartitionsResponse:
        """Let topics grow."""
        return await self._controller.append_write_event(
            "create_partitions",
            lambda c: decide_create_partitions(
                c.image, self._config, request, self._role.random, self._role.quota_of(c)
            ),
            timeout_ms,
            self._role.charge,
        )

    def check_topic_deletion(self) -> None:
        """Refuse to delete topics where nobody can: whoever asks for which is told so first.

        Raises:
            ApiError: TOPIC_DELETION_DISABLED.
        """
        check_deletion_enabled(self._role.config)

    async def delete_topics(self, request: DeleteTopicsRequest, timeout_ms: float) -> DeleteTopicsResponse:
        """Delete topics by id."""
        return await self._delete_topics(lambda _: request, timeout_ms)

    async def delete_topic(self, name: str, timeout_ms: float) -> DeleteTopicsResponse:
        """Delete a topic by name."""
        return await self._delete_topics(
            lambda image: DeleteTopicsRequest(topic_ids=[topic_named(image, name).id]), timeout_ms
        )

    async def _delete_topics(
        self, request_of: Callable[[MetadataImage], DeleteTopicsRequest], timeout_ms: float
    ) -> DeleteTopicsResponse:
        before = self._controller.stable

        def decide(context: WriteContext) -> Decision[DeleteTopicsResponse]:
            nonlocal before
            before = context.image
            self.check_topic_deletion()
            return decide_delete_topics(before, request_of(before), self._role.quota_of(context))

        def applied(decision: Decision[DeleteTopicsResponse], end_offset: int) -> None:
            gone = [one.topic_id for one in decision.reply.responses if one.error_code is ErrorCode.NONE]
            topics = [before.topics.by_id[topic_id] for topic_id in gone]
            self._role.charge(decision, end_offset)
            self._role.deletions.begin(before, topics, end_offset - 1)

        return await self._controller.append_write_event("delete_topics", decide, timeout_ms, applied)

    def describe_topic_deletions(self) -> DescribeTopicDeletionsResponse:
        """Deleted topics whose replicas are not all known to be gone, as far as this node knows."""
        deletions = self._role.deletions
        return DescribeTopicDeletionsResponse(
            is_active=self._controller.is_active,
            topics=deletions.describe(self._controller.stable),
            forgotten=deletions.forgotten,
        )

    def count_topic_deletions(self) -> DeletionCounts:
        """The same in numbers."""
        return self._role.deletions.counts(self._controller.stable)

    def throttled_mutations(self) -> int:
        """Topics not created, grown or deleted for their client's quota, since the process started."""
        return self._role.mutation_quotas.throttled

    async def alter_partition(self, request: AlterPartitionRequest, timeout_ms: float) -> AlterPartitionResponse:
        """A leader proposes ISRs."""
        return await self._controller.append_write_event(
            "alter_partition", lambda c: decide_alter_partition(c.image, self._config, request), timeout_ms
        )

    async def alter_partition_columns(
        self, broker_id: int, broker_epoch: int, columns: AlterPartitionColumns, timeout_ms: float
    ) -> AlteredPartitions:
        """``alter_partition`` for many partitions at once."""
        return await self._controller.append_write_event(
            "alter_partition",
            lambda c: decide_alter_partition_columns(c.image, self._config, broker_id, broker_epoch, columns),
            timeout_ms,
        )

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, timeout_ms: float
    ) -> AssignReplicasToDirsResponse:
        """A broker says in which directories its replicas lie."""
        return await self._controller.append_write_event(
            "assign_replicas_to_dirs",
            lambda c: decide_assign_replicas_to_dirs(c.image, self._config, request),
            timeout_ms,
        )

    async def elect_leaders(self, request: ElectLeadersRequest, timeout_ms: float) -> ElectLeadersResponse:
        """Hold elections that an operator asks for."""
        return await self._controller.append_write_event(
            "elect_leaders" if request.election_type == "PREFERRED" else "elect_unclean_leaders",
            lambda c: decide_elect_leaders(c.image, self._config, request),
            timeout_ms,
        )

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, timeout_ms: float
    ) -> AlterPartitionReassignmentsResponse:
        """Start and cancel reassignments."""
        return await self._controller.append_write_event(
            "alter_partition_reassignments",
            lambda c: decide_alter_partition_reassignments(c.image, self._config, request),
            timeout_ms,
        )

    # --- brokers -------------------------------------------------------------------------------------

    async def register_broker(
        self, request: BrokerRegistrationRequest, timeout_ms: float
    ) -> BrokerRegistrationResponse:
        """A broker process has started."""
        before = self._controller.stable

        def decide(context: WriteContext) -> Decision[BrokerRegistrationResponse]:
            nonlocal before
            before = context.image
            sessions = self._role.sessions
            return decide_register_broker(
                context.image, self._config, sessions, request, context.next_offset, context.now_ms
            )

        def applied(decision: Decision[BrokerRegistrationResponse], end_offset: int) -> None:
            apply_registration(self._role.sessions, before, request, decision, end_offset)

        return await self._controller.append_write_event("register_broker", decide, timeout_ms, applied)

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest, timeout_ms: float) -> BrokerHeartbeatResponse:
        """A broker is alive, and says how far it is and what it wants."""
        reply = self.broker_heartbeat_at_once(request)
        if reply is not None:
            return reply
        # Noted outside of the queue: a controller that is behind must not fence brokers that speak.
        self._role.note_contact(Session(request.broker_id, request.broker_epoch))
        image = self._controller.stable

        def decide(context: WriteContext) -> HeartbeatDecision:
            nonlocal image
            image = context.image
            return decide_broker_heartbeat(image, self._config, self._role.sessions, request, context.now_ms)

        def applied(decision: Decision[BrokerHeartbeatResponse], end_offset: int) -> None:
            assert isinstance(decision, HeartbeatDecision)
            apply_heartbeat(self._role.sessions, request, decision, end_offset)
            if request.undeleted is not None:
                self._role.deletions.report(image, request.broker_id, request.undeleted)
            self._role.schedule_fencing()

        name = "controlled_shutdown" if request.want_shut_down else "broker_heartbeat"
        return await self._controller.append_write_event(name, decide, timeout_ms, applied)

    def broker_heartbeat_at_once(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse | None:
        """The answer to a heartbeat that changes nothing, where it depends on nothing that may still be lost.

        That is what the broker's registration says, and its session: whatever others change meanwhile, it is answered.
        Its place is before all events that wait, to which it makes no difference. None: it has to take its turn.
        """
        standing = standing_or_none(request)
        reply = None if standing is None else self._answer_steady(standing, request.current_metadata_offset)
        if reply is not None and request.undeleted is not None:
            self._role.deletions.report(self._controller.stable, request.broker_id, request.undeleted)
        return reply

    def repeated_heartbeat(self, standing: SteadyBroker, metadata_offset: int) -> BrokerHeartbeatResponse | None:
        """The same for a broker that says again what it said, with nothing left of deleted topics.

        Args:
            metadata_offset: the last offset that it has applied.
        """
        if self._role.deletions.waits_for(standing.session.broker_id):
            return None  # what it says of them is news
        return self._answer_steady(standing, metadata_offset)

    def _answer_steady(self, standing: SteadyBroker, metadata_offset: int) -> BrokerHeartbeatResponse | None:
        broker_id, sessions = standing.session.broker_id, self._role.sessions_or_none
        image = self._controller.settled(broker_id)
        if image is None or sessions is None:
            return None
        now_ms = self._controller.scheduler.monotonic_ms()
        reply = steady_heartbeat(image, sessions, standing, metadata_offset, now_ms)
        if reply is not None:
            sessions.stay(standing.session, metadata_offset, now_ms)
            self._role.schedule_fencing()
        return reply

    async def unregister_broker(self, request: UnregisterBrokerRequest, timeout_ms: float) -> UnregisterBrokerResponse:
        """Forget a broker."""

        def applied(_: Decision[UnregisterBrokerResponse], __: int) -> None:
            apply_unregistration(self._role.sessions, request)
            self._role.deletions.forget_broker(request.broker_id)

        return await self._controller.append_write_event(
            "unregister_broker",
            lambda c: decide_unregister_broker(c.image, self._config, request),
            timeout_ms,
            applied,
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, timeout_ms: float
    ) -> AllocateProducerIdsResponse:
        """Give a broker a block of producer ids."""
        return await self._controller.append_write_event(
            "allocate_producer_ids", lambda c: decide_allocate_producer_ids(c.image, request), timeout_ms
        )

    # --- controllers ---------------------------------------------------------------------------------

    async def register_controller(
        self, request: ControllerRegistrationRequest, timeout_ms: float
    ) -> ControllerRegistrationResponse:
        """A controller process has started."""
        return await self._controller.append_write_event(
            "register_controller", lambda c: decide_register_controller(c.image, request), timeout_ms
        )

    # --- configs, labels and features ------------------------------------------------------------------------

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, timeout_ms: float
    ) -> AlterConfigsResponse:
        """Change configs one by one."""
        return await self._controller.append_write_event(
            "incremental_alter_configs",
            lambda c: decide_incremental_alter_configs(c.image, self._config, request),
            timeout_ms,
        )

    async def alter_configs(self, request: AlterConfigsRequest, timeout_ms: float) -> AlterConfigsResponse:
        """Replace all configs of resources."""
        return await self._controller.append_write_event(
            "alter_configs", lambda c: decide_alter_configs(c.image, self._config, request), timeout_ms
        )

    async def describe_configs(
        self, request: DescribeConfigsRequest, *, is_linearizable: bool
    ) -> DescribeConfigsResponse:
        """Configs as they hold."""
        return await self._controller.append_read_event(
            lambda image: describe_configs(image, self._config, request), is_linearizable=is_linearizable
        )

    async def alter_labels(self, request: AlterLabelsRequest, timeout_ms: float) -> AlterLabelsResponse:
        """Change labels, if all conditions hold."""
        return await self._controller.append_write_event(
            "alter_labels", lambda c: decide_alter_labels(c.image, request), timeout_ms
        )

    async def update_features(self, request: UpdateFeaturesRequest, timeout_ms: float) -> UpdateFeaturesResponse:
        """Change feature levels."""
        return await self._controller.append_write_event(
            "update_features", lambda c: decide_update_features(c.image, self._config, request), timeout_ms
        )

    async def describe_features(self, *, is_linearizable: bool) -> DescribeFeaturesResponse:
        """Feature levels as they hold."""
        return await self._controller.append_read_event(describe_features, is_linearizable=is_linearizable)
