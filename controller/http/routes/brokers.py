"""The rows of the route table by which brokers speak with the active controller."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.columns import AlterPartitionColumnsRequest, AlterPartitionColumnsResponse
from quorate.controller.api.content import JSON_OR_MSGPACK, MSGPACK
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import common as handlers
from quorate.controller.http.handlers.repeated_heartbeats import repeated_heartbeat
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import AsNode
from quorate.controller.protocol import BrokerHeartbeatRequest, BrokerHeartbeatResponse

BROKER_ROUTES: Final[tuple[Route, ...]] = (
    write(
        "/v1/broker-rpc/register",
        "A broker registers (Kafka's BrokerRegistration)",
        Operations.register_broker,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        media=JSON_OR_MSGPACK,
        # Directories, a thousand of them.
        takes_lists=True,
        errors=(404, 409, 422, 429),
    ),
    route(
        "POST",
        "/v1/broker-rpc/heartbeat",
        "A broker is alive (Kafka's BrokerHeartbeat)",
        handlers.broker_heartbeat,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        parameters=Nothing,
        body=BrokerHeartbeatRequest,
        reply=BrokerHeartbeatResponse,
        serving=Serving.ACTIVE,
        media=JSON_OR_MSGPACK,
        # It names the topics whose replicas are still there.
        takes_lists=True,
        errors=(404, 409, 429),
        at_once=handlers.broker_heartbeat_at_once,
        repeated=repeated_heartbeat,
    ),
    write(
        "/v1/broker-rpc/alter-partition",
        "A leader asks for other ISRs (Kafka's AlterPartition); outcomes are in the reply, partition by partition",
        Operations.alter_partition,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        media=JSON_OR_MSGPACK,
        takes_lists=True,
        errors=(404, 409, 429),
    ),
    route(
        "POST",
        "/v1/broker-rpc/alter-partition-columns",
        "AlterPartition for many thousands of partitions, as columns",
        handlers.alter_partition_columns,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        parameters=Nothing,
        body=AlterPartitionColumnsRequest,
        reply=AlterPartitionColumnsResponse,
        serving=Serving.ACTIVE,
        media=(MSGPACK,),
        takes_lists=True,
        errors=(404, 409, 429),
    ),
    write(
        "/v1/broker-rpc/assign-replicas-to-dirs",
        "A broker says where its replicas lie (Kafka's AssignReplicasToDirs); outcomes are in the reply",
        Operations.assign_replicas_to_dirs,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        media=JSON_OR_MSGPACK,
        takes_lists=True,
        errors=(404, 409, 422, 429),
    ),
    write(
        "/v1/broker-rpc/allocate-producer-ids",
        "A broker gets a block of producer ids that nobody else has (Kafka's AllocateProducerIds)",
        Operations.allocate_producer_ids,
        tag="broker RPCs",
        permission=AsNode("broker", "broker_id"),
        media=JSON_OR_MSGPACK,
        errors=(404, 409, 429),
    ),
)
