"""Route handlers: each hands its request to the controller, or reads the committed state."""

from __future__ import annotations

import asyncio
from functools import partial

from quorate.controller.answers.explain import explain
from quorate.controller.answers.scope import Scope
from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.api.answers.status_models import Protection, StatusParameters, StatusReply
from quorate.controller.api.columns import (
    AlterPartitionColumnsRequest,
    AlterPartitionColumnsResponse,
    columns_of,
    response_of,
)
from quorate.controller.api.models import (
    BrokerParameters,
    BrokerViewParameters,
    DigestParameters,
    Nothing,
    PastViewParameters,
    ReadParameters,
)
from quorate.controller.api.resources import (
    BrokerReply,
    BrokersReply,
    ClusterReply,
    DigestReply,
    QuorumReply,
)
from quorate.controller.http.handlers.views import (
    broker_replies,
    broker_reply,
    cluster_reply,
    elections_reply,
    quorum_reply,
    unsupported_entities,
)
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Call
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorate.controller.reads.answer_turns import Check
from quorate.controller.reads.image_counts import Counted
from quorate.controller.reads.verdict import judge
from quorate.controller.topics.reassignments import list_partition_reassignments
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from quorate.snapshots.digest_form import DIGEST_FORM
from quorate.snapshots.image.image import MetadataImage


def is_linearizable(parameters: ReadParameters) -> bool:
    """Whether a read needs a barrier."""
    return parameters.consistency == "linearizable"


async def read_image(call: Call, parameters: ReadParameters) -> MetadataImage:
    """The committed state, as fresh as it is asked for."""
    return await call.node.controller.append_read_event(
        lambda image: image, is_linearizable=is_linearizable(parameters)
    )


# --- the cluster as a whole ------------------------------------------------------------------------------


def observe_quorum(node: Node) -> QuorumReply:
    """Agreement as this node sees it."""
    return quorum_reply(
        node.controller.stable, node.node_id, node.cluster.quorum(), node.peers, node.controller.applied_offset
    )


def unprotected_by(node: Node) -> list[Protection]:
    """The protections that this node's API goes without."""
    lacking: list[tuple[Protection, bool]] = [("tls", node.tls is None), ("authorizer", not node.access.is_enforced)]
    return [protection for protection, is_lacking in lacking if is_lacking]


async def get_status(call: Call, parameters: StatusParameters, body: Nothing) -> StatusReply:
    node = call.node
    image = node.controller.stable
    status = status_reply(node, image, await node.counts.count(image))
    if parameters.explain and any(reason.partitions for reason in status.reasons):
        return status.model_copy(update={"explanation": await _explanation_in_time(call, image)})
    return status


def status_reply(node: Node, image: MetadataImage, counted: Counted) -> StatusReply:
    """The cluster as the node sees it, with what was counted in its state."""
    quorum = observe_quorum(node)
    brokers = broker_replies(image, node.broker_reports.sessions(quorum.epoch), quorum.high_watermark, counted)
    verdict, reasons = judge(quorum, brokers, counted.counts, node.cluster.faults(), counted.unregistered)
    return StatusReply(
        verdict=verdict,
        reasons=reasons,
        cluster_id=node.cluster_id,
        quorum=quorum,
        brokers=brokers,
        topics=len(image.topics),
        partitions=counted.counts,
        offline_partitions=counted.offline,
        states=counted.states,
        elections=elections_reply(node.controller.head_watch.counts),
        unsupported=unsupported_entities(image, node.access),
        unprotected_by=[] if quorum.is_past else unprotected_by(node),
    )


async def _explanation_in_time(call: Call, image: MetadataImage) -> ExplainReply | None:
    """The things that are wrong with partitions; None where its turn does not come in time: the rest is worth more.

    Half of the time is left for the answer's way.
    """
    node, limit_ms = call.node, call.timeout_ms / 2
    absent_ms = await node.absences.at(image.provenance.end_offset)

    def work(check: Check) -> ExplainReply:
        return explain(Scope.of_all(image), node.config, 0, absent_ms, check)

    try:
        async with asyncio.timeout(limit_ms / 1000):
            return await node.turns.answer(call.rights.bounded_principal, limit_ms, work)
    except (TimeoutError, Overloaded):
        return None
    except ApiError as error:
        if error.code is ErrorCode.REQUEST_TIMED_OUT:
            return None
        raise


async def get_cluster(call: Call, parameters: PastViewParameters, body: Nothing) -> ClusterReply:
    node = call.node
    image = node.controller.stable
    return cluster_reply(
        image,
        cluster_id=node.cluster_id,
        view=node.cluster.quorum(),
        node_id=node.node_id,
        peers=node.peers,
        counts=(await node.counts.count(image)).counts,
    )


async def get_quorum(call: Call, parameters: PastViewParameters, body: Nothing) -> QuorumReply:
    return observe_quorum(call.node)


async def get_digest(call: Call, parameters: DigestParameters, body: Nothing) -> DigestReply:
    if parameters.doubt:
        call.node.digests.doubted.set()
    offset, digest = await call.node.digests.at(parameters.offset, min(parameters.wait_ms, call.timeout_ms))
    return DigestReply(state_offset=offset, digest=digest, form=DIGEST_FORM)


# --- brokers ---------------------------------------------------------------------------------------------


async def list_brokers(call: Call, parameters: PastViewParameters, body: Nothing) -> BrokersReply:
    node = call.node
    image = node.controller.stable
    counted = await node.counts.count(image)
    view = node.cluster.quorum()
    sessions = node.broker_reports.sessions(view.epoch)
    return BrokersReply(brokers=broker_replies(image, sessions, view.high_watermark, counted))


async def get_broker(call: Call, parameters: BrokerViewParameters, body: Nothing) -> BrokerReply:
    node = call.node
    image = node.controller.stable
    counted = await node.counts.count(image)
    view = node.cluster.quorum()
    sessions = node.broker_reports.sessions(view.epoch)
    return broker_reply(image, sessions, view.high_watermark, counted, parameters.broker_id)


async def unregister_broker(call: Call, parameters: BrokerParameters, body: Nothing) -> UnregisterBrokerResponse:
    request = UnregisterBrokerRequest(broker_id=parameters.broker_id)
    return await call.node.operations.unregister_broker(request, call.write_timeout_ms)


async def broker_heartbeat(call: Call, parameters: Nothing, body: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    node = call.node
    timeout_ms = min(call.write_timeout_ms, node.limits.heartbeat_deadline_ms)
    return _heard(node, body, await node.operations.broker_heartbeat(body, timeout_ms))


def broker_heartbeat_at_once(node: Node, body: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse | None:
    reply = node.operations.broker_heartbeat_at_once(body)
    return None if reply is None else _heard(node, body, reply)


def _heard(node: Node, body: BrokerHeartbeatRequest, reply: BrokerHeartbeatResponse) -> BrokerHeartbeatResponse:
    node.broker_reports.note(node.cluster.position().epoch, body.broker_id, body.current_metadata_offset)
    return reply


async def alter_partition_columns(
    call: Call, parameters: Nothing, body: AlterPartitionColumnsRequest
) -> AlterPartitionColumnsResponse:
    altered = await call.node.operations.alter_partition_columns(
        body.broker_id, body.broker_epoch, columns_of(body), call.write_timeout_ms
    )
    return response_of(altered)


# --- partitions ------------------------------------------------------------------------------------------


async def list_reassignments(
    call: Call, parameters: ReadParameters, body: Nothing
) -> ListPartitionReassignmentsResponse:
    image = await read_image(call, parameters)
    return await call.on_thread(partial(list_partition_reassignments, image, ListPartitionReassignmentsRequest()))
