"""Images and soft state as replies: pure functions, the same on every node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.controller.api.resources import (
    BrokerEndpointReply,
    BrokerReply,
    BrokerStateName,
    ClusterReply,
    ElectionsReply,
    PartitionCounts,
    QuorumReply,
    TopicReply,
    VoterReply,
    VoterRole,
)
from quorate.controller.configs.resources import is_sensitive
from quorate.controller.engine.head_counters import HeadCounts
from quorate.controller.http.ports import Peer, QuorumView, VoterView
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.protocol import TopicConfig
from quorate.controller.quotas.entities import ENFORCED
from quorate.controller.reads.broker_reports import BrokerReport
from quorate.controller.reads.image_counts import Counted
from quorate.controller.reads.topic_description import describe_topic
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS

#: A voter that has not answered for so long is called unreachable: twice the default election timeout.
SILENT_MS: Final = 2_000.0


def quorum_reply(
    image: MetadataImage, node_id: int, view: QuorumView, peers: Mapping[int, Peer], applied_offset: int
) -> QuorumReply:
    """Agreement as one node sees it, or as a log tells of it."""
    voters = () if image.kraft.voters is None else image.kraft.voters.voters
    directories = {voter.voter_id: voter.voter_directory_id for voter in voters}
    if view.is_past:
        return _past_quorum(node_id, view, peers, applied_offset, directories)
    return QuorumReply(
        observed_by=node_id,
        is_past=False,
        is_active=view.leader_id == node_id,
        active_id=view.leader_id,
        epoch=view.epoch,
        high_watermark=view.high_watermark,
        log_start_offset=view.log_start_offset,
        log_end_offset=view.log_end_offset,
        applied_offset=applied_offset,
        generation=view.generation,
        voters=[_voter_reply(peers[id_], node_id, view, directories.get(id_)) for id_ in sorted(peers)],
    )


def _past_quorum(
    node_id: int, view: QuorumView, peers: Mapping[int, Peer], applied_offset: int, directories: Mapping[int, Uuid]
) -> QuorumReply:
    """Of static voters no log tells: then they are those of now."""
    return QuorumReply(
        observed_by=node_id,
        is_past=True,
        is_active=False,
        active_id=view.leader_id,
        epoch=view.epoch,
        high_watermark=view.high_watermark,
        log_start_offset=None,
        log_end_offset=None,
        applied_offset=applied_offset,
        generation=None,
        voters=[
            VoterReply(
                node_id=id_,
                http=peers[id_].url if id_ in peers else "",
                role="active" if id_ == view.leader_id else "unknown",
                log_end_offset=None,
                lag_records=None,
                last_contact_ms=None,
                directory_id=directories.get(id_),
                last_caught_up_ms=None,
                vote_waits_for=[],
            )
            for id_ in sorted(directories or peers)
        ],
    )


def _voter_reply(peer: Peer, node_id: int, view: QuorumView, directory_id: Uuid | None) -> VoterReply:
    known = view.voters.get(peer.node_id)
    end, contact, caught_up = None, None, None
    if peer.node_id == node_id:
        # Whoever leads has everything; another cannot say how far it is behind.
        end, contact, caught_up = view.durable_end, 0.0, 0.0 if view.leader_id == node_id else None
    elif known is not None:
        end, contact, caught_up = known.durable_end, known.last_contact_ms_ago, known.caught_up_ms_ago
    return VoterReply(
        node_id=peer.node_id,
        http=peer.url,
        role=_voter_role(peer.node_id, node_id, view, known),
        log_end_offset=end,
        lag_records=max(0, view.log_end_offset - end) if end is not None and view.leader_id == node_id else None,
        last_contact_ms=None if contact is None else int(contact),
        directory_id=directory_id,
        last_caught_up_ms=None if caught_up is None else int(caught_up),
        vote_waits_for=[] if known is None else list(known.waits_for),
    )


def _voter_role(voter_id: int, node_id: int, view: QuorumView, known: VoterView | None) -> VoterRole:
    if voter_id == view.leader_id:
        return "active"
    if voter_id == node_id:
        return "standby" if view.is_voting else "non-voter"
    if known is None or view.leader_id != node_id:
        return "unknown"
    if not known.is_connected or known.last_contact_ms_ago is None or known.last_contact_ms_ago > SILENT_MS:
        return "unreachable"
    return "standby" if known.is_voting else "non-voter"


def broker_replies(
    image: MetadataImage, sessions: Mapping[int, BrokerReport], high_watermark: int, counted: Counted
) -> list[BrokerReply]:
    """All registered brokers, by id."""
    brokers = sorted(image.cluster.brokers.values(), key=lambda broker: broker.id)
    return [_broker_reply(broker, sessions.get(broker.id), high_watermark, counted) for broker in brokers]


def broker_reply(
    image: MetadataImage,
    sessions: Mapping[int, BrokerReport],
    high_watermark: int,
    counted: Counted,
    broker_id: int,
) -> BrokerReply:
    """One registered broker.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED.
    """
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker_id} is registered")
    return _broker_reply(broker, sessions.get(broker_id), high_watermark, counted)


def _broker_reply(
    broker: BrokerRegistration, session: BrokerReport | None, high_watermark: int, counted: Counted
) -> BrokerReply:
    return BrokerReply(
        id=broker.id,
        rack=broker.rack,
        state=_broker_state(broker),
        epoch=broker.epoch,
        incarnation_id=broker.incarnation_id,
        listeners=[
            BrokerEndpointReply(name=listener.name, host=listener.host, port=listener.port)
            for listener in sorted(broker.listeners, key=lambda listener: listener.name)
        ],
        directories=list(broker.directories),
        cordoned_directories=list(broker.cordoned_directories),
        applied_offset=None if session is None else session.applied_offset,
        lag_records=None if session is None else max(0, high_watermark - session.applied_offset),
        last_heartbeat_ms=None if session is None else int(session.last_heartbeat_ms_ago),
        partitions=counted.of_broker(broker.id),
    )


def _broker_state(broker: BrokerRegistration) -> BrokerStateName:
    if broker.is_fenced:
        return "fenced"
    return "controlled-shutdown" if broker.in_controlled_shutdown else "active"


def cluster_reply(
    image: MetadataImage,
    *,
    cluster_id: str,
    view: QuorumView,
    node_id: int,
    peers: Mapping[int, Peer],
    counts: PartitionCounts,
) -> ClusterReply:
    """The cluster in a few numbers."""
    return ClusterReply(
        cluster_id=cluster_id,
        observed_by=node_id,
        active_id=view.leader_id,
        epoch=view.epoch,
        state_offset=image.provenance.end_offset,
        metadata_version=image.features.metadata_version,
        features={"kraft.version": image.kraft.version, **dict(sorted(image.features.levels.items()))},
        controllers=sorted(peers),
        brokers=sorted(image.cluster.brokers),
        topics=len(image.topics),
        partitions=counts,
        next_producer_id=image.producer_ids.next_producer_id or 0,
    )


def topic_reply(image: MetadataImage, name: str, *, has_configs: bool) -> TopicReply:
    """One topic with its partitions and, if they may be told, its configs.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = describe_topic(image, name)
    if topic.error_code is not ErrorCode.NONE:
        raise ApiError(topic.error_code, topic.error_message or topic.error_code.name)
    configs = topic_configs(image, name) if has_configs else []
    return TopicReply(state_offset=image.provenance.end_offset, topic=topic, configs=configs)


def topic_configs(image: MetadataImage, name: str) -> list[TopicConfig]:
    """A topic's own dynamic configs, by name; values that may be secrets are None."""
    configs = image.configs.of(TOPIC_RESOURCE, name)
    return [
        TopicConfig(name=key, value=None if is_sensitive(TOPIC_RESOURCE, key) else configs[key])
        for key in sorted(configs)
    ]


def unsupported_entities(image: MetadataImage, access: AccessControl) -> dict[str, int]:
    """The numbers of entities that are stored and without effect here, by kind; kinds with none are left out."""
    logins = access.logins
    mechanisms = frozenset[str]() if logins is None else frozenset(logins.mechanisms)
    counts = {
        "ACLs": 0 if access.is_enforced else len(image.acls.entries),
        "SCRAM credentials": sum(
            SCRAM_MECHANISMS.get(mechanism) not in mechanisms for _, mechanism in image.scram.credentials
        ),
        "delegation tokens": 0 if logins is not None and logins.takes_tokens else len(image.delegation_tokens.tokens),
        "client quotas": sum(not values.keys() <= ENFORCED for values in image.client_quotas.entities.values()),
    }
    return {kind: count for kind, count in counts.items() if count}


def elections_reply(counts: HeadCounts) -> ElectionsReply:
    """Of a node's own elections those that gave a partition a leader that was not in sync."""
    return ElectionsReply(
        from_eligible=counts.elections_from_eligible,
        last_known=counts.last_known_elections,
        unclean=counts.unclean_elections - counts.last_known_elections,
    )
