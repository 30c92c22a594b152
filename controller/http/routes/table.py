"""The route table: all that the HTTP API has."""

from __future__ import annotations

from typing import Final

from quorate.controller.api import headers
from quorate.controller.api.content import BATCHES, JSON, OCTETS
from quorate.controller.api.models import (
    BrokerParameters,
    BrokerViewParameters,
    CheckpointParameters,
    DigestParameters,
    FeedParameters,
    HealthReply,
    Nothing,
    PastViewParameters,
    ReadParameters,
    TopicParameters,
    TopicReadParameters,
)
from quorate.controller.api.resources import (
    BrokerReply,
    BrokersReply,
    ClusterReply,
    DigestReply,
    QuorumReply,
    StatusReply,
    TopicReply,
)
from quorate.controller.http.handlers import common as handlers
from quorate.controller.http.handlers import topics
from quorate.controller.http.handlers.health import get_livez, get_readyz
from quorate.controller.http.handlers.raw import METRICS_MEDIA, get_batches, get_checkpoint, get_metrics
from quorate.controller.http.openapi import get_openapi
from quorate.controller.http.routes.access import ACCESS_ROUTES
from quorate.controller.http.routes.answers import ANSWER_ROUTES
from quorate.controller.http.routes.audit import AUDIT_ROUTES
from quorate.controller.http.routes.brokers import BROKER_ROUTES
from quorate.controller.http.routes.checkpoints import CHECKPOINT_ROUTES
from quorate.controller.http.routes.configs import CONFIG_ROUTES
from quorate.controller.http.routes.controllers import CONTROLLER_ROUTES
from quorate.controller.http.routes.deletions import DELETION_ROUTES
from quorate.controller.http.routes.feed import FEED_ROUTES
from quorate.controller.http.routes.labels import LABEL_ROUTES
from quorate.controller.http.routes.login import LOGIN_ROUTES
from quorate.controller.http.routes.searches import SEARCH_ROUTES
from quorate.controller.http.routes.tokens import TOKEN_ROUTES
from quorate.controller.http.routing import Route, Serving, raw_route, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import ByItem, OnCluster, Open
from quorate.controller.protocol import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ListPartitionReassignmentsResponse,
    UnregisterBrokerResponse,
)

#: As Kafka asks of whoever fetches its metadata log. Nothing of the log can be left out: it is read as it lies on disk.
_WHOLE_LOG: Final = OnCluster(
    "CLUSTER_ACTION", why="the metadata log holds all topics, configs and credentials, and is read whole or not at all"
)
_FEED_HEADERS: Final = (
    (headers.LOG_START_OFFSET, "First record that this node can give."),
    (headers.BASE_OFFSET, "First record in the body; with an empty body the offset that was asked for."),
    (headers.END_OFFSET, "(Exclusive) end of the body: the next offset to ask for."),
    (headers.END_EPOCH, "Epoch of the last batch in the body; empty when the body is."),
)
_CHECKPOINT_HEADERS: Final = (
    (headers.CHECKPOINT, "`<end offset>-<epoch>` of the checkpoint."),
    (headers.CHECKPOINT_SIZE, "Bytes of the whole checkpoint."),
    (headers.CHECKPOINT_POSITION, "Position of the body in it."),
    (headers.CRC, "CRC-32C of the body, 8 hexadecimal digits."),
)

ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/status",
        "Verdict on the cluster with its reasons, voters, brokers, partitions: one screen",
        handlers.get_status,
        tag="cluster",
        permission=OnCluster("DESCRIBE"),
        parameters=PastViewParameters,
        body=Nothing,
        reply=StatusReply,
        serving=Serving.VIEW,
    ),
    route(
        "GET",
        "/v1/cluster",
        "The cluster in a few numbers",
        handlers.get_cluster,
        tag="cluster",
        permission=OnCluster("DESCRIBE"),
        parameters=PastViewParameters,
        body=Nothing,
        reply=ClusterReply,
        serving=Serving.VIEW,
    ),
    route(
        "GET",
        "/v1/quorum",
        "The controllers: who is active, and how far each voter is",
        handlers.get_quorum,
        tag="cluster",
        # One that lost its directory asks the others, before it is given another (`quorate recover rejoin`).
        permission=OnCluster("DESCRIBE", open_to="controller"),
        parameters=PastViewParameters,
        body=Nothing,
        reply=QuorumReply,
        serving=Serving.VIEW,
    ),
    route(
        "GET",
        "/v1/image/digest",
        "Digest of this node's state at an offset: equal on all nodes, or something is wrong",
        handlers.get_digest,
        tag="cluster",
        permission=OnCluster("DESCRIBE", open_to="node"),
        parameters=DigestParameters,
        body=Nothing,
        reply=DigestReply,
        serving=Serving.HERE,
        errors=(409,),
    ),
    route(
        "GET",
        "/v1/brokers",
        "All registered brokers",
        handlers.list_brokers,
        tag="brokers",
        permission=OnCluster("DESCRIBE"),
        parameters=PastViewParameters,
        body=Nothing,
        reply=BrokersReply,
        serving=Serving.VIEW,
    ),
    route(
        "GET",
        "/v1/brokers/{broker_id}",
        "One registered broker",
        handlers.get_broker,
        tag="brokers",
        permission=OnCluster("DESCRIBE"),
        parameters=BrokerViewParameters,
        body=Nothing,
        reply=BrokerReply,
        serving=Serving.VIEW,
        errors=(404,),
    ),
    route(
        "DELETE",
        "/v1/brokers/{broker_id}",
        "Remove a broker's registration for good (Kafka's UnregisterBroker)",
        handlers.unregister_broker,
        tag="brokers",
        permission=OnCluster("ALTER"),
        parameters=BrokerParameters,
        body=Nothing,
        reply=UnregisterBrokerResponse,
        serving=Serving.ACTIVE,
        errors=(404, 409, 422, 429),
    ),
    *ANSWER_ROUTES,
    *AUDIT_ROUTES,
    *SEARCH_ROUTES,
    *DELETION_ROUTES,
    route(
        "POST",
        "/v1/topics",
        "Create topics, one or many (Kafka's CreateTopics)",
        topics.create_topics,
        tag="topics",
        permission=ByItem("CREATE on Cluster, or on each Topic; DESCRIBE_CONFIGS on it to be told its configs"),
        parameters=Nothing,
        body=CreateTopicsRequest,
        reply=CreateTopicsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(409, 422, 429),
    ),
    route(
        "GET",
        "/v1/topics/{name}",
        "One topic with its partitions and configs",
        topics.get_topic,
        tag="topics",
        permission=ByItem("DESCRIBE on Topic, be it there or not; DESCRIBE_CONFIGS on it for its configs"),
        parameters=TopicReadParameters,
        body=Nothing,
        reply=TopicReply,
        serving=Serving.CONSISTENT,
        errors=(404,),
    ),
    route(
        "DELETE",
        "/v1/topics/{name}",
        "Delete one topic",
        topics.delete_topic,
        tag="topics",
        permission=ByItem("DELETE on Cluster or Topic; DESCRIBE on Topic to be told whether it is there"),
        parameters=TopicParameters,
        body=Nothing,
        reply=DeleteTopicsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(404, 429),
    ),
    route(
        "POST",
        "/v1/topics/delete",
        "Delete topics by id, one or many (Kafka's DeleteTopics)",
        topics.delete_topics,
        tag="topics",
        permission=ByItem("DELETE on Cluster, or on each Topic; DESCRIBE on it to be told its name"),
        parameters=Nothing,
        body=DeleteTopicsRequest,
        reply=DeleteTopicsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(404, 429),
    ),
    route(
        "POST",
        "/v1/topics/partitions",
        "Give topics more partitions (Kafka's CreatePartitions)",
        topics.create_partitions,
        tag="topics",
        permission=ByItem("ALTER on each Topic"),
        parameters=Nothing,
        body=CreatePartitionsRequest,
        reply=CreatePartitionsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(404, 409, 422, 429),
    ),
    route(
        "GET",
        "/v1/partition-reassignments",
        "Open reassignments",
        handlers.list_reassignments,
        tag="partitions",
        permission=OnCluster("DESCRIBE"),
        parameters=ReadParameters,
        body=Nothing,
        reply=ListPartitionReassignmentsResponse,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/partition-reassignments",
        "Start reassignments, or cancel them: replicas null (Kafka's AlterPartitionReassignments)",
        Operations.alter_partition_reassignments,
        tag="partitions",
        permission=OnCluster("ALTER"),
        is_bulk=True,
        errors=(404, 409, 422, 429),
    ),
    write(
        "/v1/leader-elections",
        "Elect leaders now (Kafka's ElectLeaders)",
        Operations.elect_leaders,
        tag="partitions",
        permission=OnCluster("ALTER"),
        is_bulk=True,
        errors=(404, 409, 429),
    ),
    *CONFIG_ROUTES,
    *LABEL_ROUTES,
    *CONTROLLER_ROUTES,
    *CHECKPOINT_ROUTES,
    *ACCESS_ROUTES,
    *LOGIN_ROUTES,
    *TOKEN_ROUTES,
    *BROKER_ROUTES,
    raw_route(
        "/v1/metadata/batches",
        "The metadata feed: committed record batches as they lie in the log",
        get_batches,
        tag="metadata feed",
        permission=_WHOLE_LOG,
        parameters=FeedParameters,
        media=BATCHES,
        headers=_FEED_HEADERS,
        errors=(409, 429),
    ),
    raw_route(
        "/v1/metadata/checkpoint",
        "A piece of a checkpoint file",
        get_checkpoint,
        tag="metadata feed",
        permission=_WHOLE_LOG,
        parameters=CheckpointParameters,
        media=OCTETS,
        headers=_CHECKPOINT_HEADERS,
        errors=(404, 416),
    ),
    *FEED_ROUTES,
    raw_route(
        "/v1/openapi.json",
        "This description",
        get_openapi,
        tag="about",
        permission=OnCluster("DESCRIBE"),
        parameters=Nothing,
        media=JSON,
    ),
    raw_route(
        "/metrics",
        "Metrics in Prometheus' form",
        get_metrics,
        tag="health",
        permission=OnCluster("DESCRIBE"),
        parameters=Nothing,
        media=METRICS_MEDIA,
    ),
    raw_route(
        "/livez",
        "Whether this process works",
        get_livez,
        tag="health",
        permission=Open(),
        parameters=Nothing,
        media=JSON,
        reply=HealthReply,
        takes_head=True,
    ),
    raw_route(
        "/readyz",
        "Whether this node does its part: follows the log, votes, knows who is active",
        get_readyz,
        tag="health",
        permission=Open(),
        parameters=Nothing,
        media=JSON,
        reply=HealthReply,
        takes_head=True,
    ),
)
