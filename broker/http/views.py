"""Images and the state of this process as replies."""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.host import BrokerHost, BrokerReadiness
from quorate.broker.http.replies import (
    DirectoriesReply,
    FollowingReply,
    ImageReply,
    ImageTopicReply,
    ImageTopicsReply,
    ImageTopicSummary,
    PartitionCountsReply,
    PlayedBrokerReply,
    ProcessReply,
    PublisherReply,
    RegistrationReply,
    RehearsalPace,
    ReplicaManagerReply,
    TopicPageParameters,
)
from quorate.broker.lifecycle.session import BrokerSession
from quorate.broker.metadata.metadata_cache import ClientPartition, MetadataCache
from quorate.broker.metadata.topics_by_name import TopicsByName
from quorate.broker.replicas.rehearsal import RehearsalReplicas
from quorate.controller.protocol import DescribedPartition, DescribedTopic
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.derived_states import partition_state
from quorate.snapshots.views.summary import summarize


def broker_reply(readiness: BrokerReadiness) -> PlayedBrokerReply:
    """One broker of this process."""
    return PlayedBrokerReply(
        broker_id=readiness.broker_id,
        state=readiness.state.value,
        broker_epoch=None if readiness.broker_epoch < 0 else readiness.broker_epoch,
        is_ready=readiness.is_ready,
        trouble=readiness.trouble,
    )


def process_reply(host: BrokerHost) -> ProcessReply:
    """All that this process is and does."""
    replicas = host.replicas.report()
    return ProcessReply(
        cluster_id=host.loader.cluster_id,
        is_ready=host.is_ready,
        brokers=[broker_reply(readiness) for readiness in host.readiness()],
        following=_following(host),
        publishers=[
            PublisherReply(name=state.publisher.name, errors=state.error_count, missed_updates=state.missed_count)
            for state in host.publishers.states()
        ],
        replica_manager=ReplicaManagerReply(
            moves_data=replicas.moves_data,
            notice=replicas.notice,
            outside=replicas.outside,
            copying=replicas.copying,
            requests=replicas.counters.requests,
            answers=dict(sorted(replicas.counters.answers.items())),
        ),
    )


def rehearsal_reply(rehearsal: RehearsalReplicas) -> RehearsalPace:
    """The pace of the rehearsal now."""
    pace = rehearsal.pace
    return RehearsalPace(copy_bytes_per_s=pace.copy_bytes_per_s, is_stalled=pace.is_stalled)


def directories_reply(session: BrokerSession) -> DirectoriesReply:
    """The log directories of one broker of this process."""
    identity = session.identity
    return DirectoriesReply(
        broker_id=identity.broker_id,
        directories=list(identity.directories),
        failed=list(session.failed_directories),
        cordoned=list(identity.cordoned_directories),
    )


def _following(host: BrokerHost) -> FollowingReply:
    loader = host.loader
    status = loader.status
    return FollowingReply(
        controller=loader.feed_name,
        leader_id=None if status is None else status.leader_id,
        epoch=None if status is None else status.epoch,
        applied_offset=loader.last_applied_offset + 1,
        high_watermark=None if status is None else status.high_watermark,
        lag_records=loader.lag,
        is_caught_up=loader.is_caught_up,
        trouble=loader.trouble,
    )


def image_reply(image: MetadataImage, cluster_id: str) -> ImageReply:
    """An image in a few numbers; counts over all partitions."""
    summary = summarize(image)
    brokers = image.cluster.brokers
    return ImageReply(
        cluster_id=cluster_id,
        state_offset=image.provenance.end_offset,
        epoch=image.provenance.epoch,
        metadata_version=image.features.metadata_version,
        features={"kraft.version": image.kraft.version, **dict(sorted(image.features.levels.items()))},
        brokers=[
            RegistrationReply(
                broker_id=id_,
                broker_epoch=brokers[id_].epoch,
                rack=brokers[id_].rack,
                is_fenced=brokers[id_].is_fenced,
                in_controlled_shutdown=brokers[id_].in_controlled_shutdown,
                replicas=summary.brokers[id_].replicas,
                in_sync=summary.brokers[id_].in_sync,
                leaders=summary.brokers[id_].leaders,
            )
            for id_ in sorted(brokers)
        ],
        topics=len(image.topics),
        partitions=PartitionCountsReply(
            total=summary.partitions,
            offline=summary.without_leader,
            under_replicated=summary.under_replicated,
            reassigning=summary.reassigning,
            with_elr=summary.with_elr,
            without_preferred_leader=summary.not_preferred + summary.without_leader,
        ),
    )


def topics_reply(
    names: TopicsByName,
    image: MetadataImage,
    parameters: TopicPageParameters,
    is_shown: Callable[[str], bool] | None = None,
) -> ImageTopicsReply:
    """A page of the topics, by name. ``is_shown``: which may be told of; None: all."""
    # One more than asked for tells whether there is a next page.
    found = names.page(image, parameters.prefix, parameters.after, parameters.limit + 1, is_shown)
    page = found[: parameters.limit]
    return ImageTopicsReply(
        state_offset=image.provenance.end_offset,
        topics=[
            ImageTopicSummary(
                name=topic.name, topic_id=uuid_text(topic.id), partitions=len(image.partitions.rows_of(topic.id))
            )
            for topic in page
        ],
        next_after=page[-1].name if len(found) > len(page) else None,
    )


def topic_reply(cache: MetadataCache, name: str) -> ImageTopicReply:
    """One topic with its partitions.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = cache.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    partitions = [_partition(view) for view in cache.partitions(topic)]
    return ImageTopicReply(
        state_offset=cache.image.provenance.end_offset,
        topic=DescribedTopic(name=topic.name, topic_id=topic.id, partitions=partitions),
    )


def _partition(view: ClientPartition) -> DescribedPartition:
    state = view.state
    return DescribedPartition(
        partition_index=view.partition_id,
        state=partition_state(state),
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        leader_recovery_state=state.leader_recovery_state,
        replica_nodes=list(state.replicas),
        replica_states=list(view.replica_states),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
        offline_replicas=list(view.offline_replicas),
        directories=list(state.directories),
    )
