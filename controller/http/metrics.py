"""`/metrics`: everything is computed when it is scraped, from the committed state and counters others keep anyway.

Names are Kafka's in Prometheus' form: ``kafka.controller:type=KafkaController,name=ActiveControllerCount`` is
``quorate_active_controller_count``; ``raft-metrics: current-epoch`` is ``quorate_raft_current_epoch``; times in
seconds, counters with ``_total``. The help text begins with Kafka's name where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from controller.deletions import DeletionCounts
from controller.http.counters import Counters, EventTimes, Histogram
from controller.http.ports import Node, QuorumView
from controller.http.resources import PartitionCounts
from snapshots.image import MetadataImage


@dataclass(frozen=True, slots=True)
class Scrape:
    """Everything that one scrape shows, read at one moment."""

    is_active: bool
    applied_offset: int
    wall_ms: float
    image: MetadataImage
    partitions: PartitionCounts
    quorum: QuorumView
    counters: Counters
    deletions: DeletionCounts
    followers: int
    chunks_read: int


class ScrapeCollector(Collector):
    """A scrape in the library's form."""

    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield from _controller(self._scrape)
        yield from _image(self._scrape.image, self._scrape.partitions)
        yield from _deletions(self._scrape.deletions)
        yield from _counted(self._scrape.counters)
        yield from _event_times(self._scrape.counters.events)
        yield from _raft(self._scrape.quorum)
        yield from _served(self._scrape)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"quorate_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"quorate_{name}", text, value=value)


def _controller(scrape: Scrape) -> Iterator[Metric]:
    provenance = scrape.image.provenance
    lag = 0.0 if scrape.is_active or not provenance.log_time_ms else scrape.wall_ms - provenance.log_time_ms
    yield _gauge("active_controller_count", "ActiveControllerCount: 1 on the active controller.", scrape.is_active)
    yield _gauge(
        "last_applied_record_offset", "LastAppliedRecordOffset: last record in the state.", scrape.applied_offset - 1
    )
    yield _gauge(
        "last_committed_record_offset",
        "LastCommittedRecordOffset: last record known to be committed.",
        scrape.quorum.high_watermark - 1,
    )
    yield _gauge(
        "last_applied_record_timestamp_seconds",
        "LastAppliedRecordTimestamp: time of the last record in the state.",
        provenance.log_time_ms / 1000,
    )
    yield _gauge(
        "last_applied_record_lag_seconds",
        "LastAppliedRecordLagMs: age of the last record in the state; 0 on the active controller.",
        max(0.0, lag / 1000),
    )


def _image(image: MetadataImage, partitions: PartitionCounts) -> Iterator[Metric]:
    fenced = sum(broker.is_fenced for broker in image.cluster.brokers.values())
    gauges: Sequence[tuple[str, str, float]] = (
        ("fenced_broker_count", "FencedBrokerCount: registered brokers that are fenced.", fenced),
        ("active_broker_count", "ActiveBrokerCount: brokers that are not fenced.", len(image.cluster.brokers) - fenced),
        ("global_topic_count", "GlobalTopicCount: topics.", len(image.topics)),
        ("global_partition_count", "GlobalPartitionCount: partitions.", partitions.total),
        ("offline_partitions_count", "OfflinePartitionsCount: partitions without a leader.", partitions.offline),
        (
            "preferred_replica_imbalance_count",
            "PreferredReplicaImbalanceCount: partitions not led by their first replica.",
            partitions.without_preferred_leader,
        ),
        ("under_replicated_partitions", "Partitions with a replica outside the ISR.", partitions.under_replicated),
        ("under_min_isr_partitions", "Partitions with fewer in the ISR than they must have.", partitions.under_min_isr),
        ("reassigning_partitions", "Partitions with an open reassignment.", partitions.reassigning),
        (
            "current_metadata_version",
            "CurrentMetadataVersion: finalized level of metadata.version.",
            image.features.metadata_version,
        ),
    )
    for name, text, value in gauges:
        yield _gauge(name, text, value)


def _deletions(counts: DeletionCounts) -> Iterator[Metric]:
    """On a standby all are 0: what brokers say of deletions is soft state of the active controller."""
    gauges = (
        ("topics_to_delete_count", "TopicsToDeleteCount: deleted, replicas not all known to be gone.", counts.topics),
        (
            "replicas_to_delete_count",
            "ReplicasToDeleteCount: of deleted topics, not known to be gone.",
            counts.replicas,
        ),
        (
            "topics_ineligible_to_delete_count",
            "TopicsIneligibleToDeleteCount: deleted, with a replica that has to wait.",
            counts.ineligible_topics,
        ),
        (
            "replicas_ineligible_to_delete_count",
            "ReplicasIneligibleToDeleteCount: of deleted topics, on a dead broker or in a failed directory.",
            counts.ineligible_replicas,
        ),
    )
    for name, text, value in gauges:
        yield _gauge(name, text, value)


def _counted(counters: Counters) -> Iterator[Metric]:
    totals: Sequence[tuple[str, str, int]] = (
        ("event_queue_operations_started_count", "EventQueueOperationsStartedCount.", counters.events.started),
        ("event_queue_operations_timed_out_count", "EventQueueOperationsTimedOutCount.", counters.event_timeouts),
        ("new_active_controllers_count", "NewActiveControllersCount: leaders seen.", counters.new_active_controllers),
        ("metadata_error_count", "MetadataErrorCount: faults that did not stop the process.", counters.metadata_errors),
        ("handle_load_snapshot_count", "HandleLoadSnapshotCount: checkpoints loaded.", counters.checkpoints_loaded),
        ("raft_elections_started", "Elections in which this node asked for votes.", counters.elections_started),
        ("raft_elections_won", "Elections that this node won.", counters.elections_won),
    )
    for name, text, value in totals:
        yield _counter(name, text, value)
    if counters.latest_checkpoint_bytes is not None:
        yield _gauge(
            "latest_snapshot_generated_bytes", "LatestSnapshotGeneratedBytes.", counters.latest_checkpoint_bytes
        )
    if counters.latest_checkpoint_age_seconds is not None:
        text = "LatestSnapshotGeneratedAgeMs: age of the newest record in it."
        yield _gauge("latest_snapshot_generated_age_seconds", text, counters.latest_checkpoint_age_seconds)
    answers = CounterMetricFamily("quorate_http_answers", "Answers by route and status.", labels=["route", "status"])
    for (route, status), count in sorted(counters.http_answers.items()):
        answers.add_metric([route, str(status)], count)
    yield answers


def _event_times(events: EventTimes) -> Iterator[Metric]:
    yield _histogram("event_queue_time_seconds", "EventQueueTimeMs: from queued to started.", events.queue)
    yield _histogram(
        "event_queue_processing_time_seconds", "EventQueueProcessingTimeMs: from started to done.", events.processing
    )


def _histogram(name: str, text: str, histograms: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(f"quorate_{name}", text, labels=["event"])
    for event, histogram in sorted(histograms.items()):
        family.add_metric([event], histogram.buckets(), histogram.total_seconds)
    return family


def _raft(view: QuorumView) -> Iterator[Metric]:
    leader = -1 if view.leader_id is None else view.leader_id
    yield _gauge("current_controller_id", "CurrentControllerId: the active controller; -1 when none is known.", leader)
    yield _gauge("raft_current_leader", "current-leader: -1 when none is known.", leader)
    yield _gauge("raft_current_epoch", "current-epoch.", view.epoch)
    yield _gauge("raft_high_watermark", "high-watermark: exclusive end of what is committed.", view.high_watermark)
    yield _gauge("raft_log_start_offset", "First record in the log.", view.log_start_offset)
    yield _gauge("raft_log_end_offset", "log-end-offset: exclusive.", view.log_end_offset)
    connected = sum(voter.is_connected for voter in view.voters.values())
    text = "number-unknown-voter-connections: other voters without a connection."
    yield _gauge("raft_number_unknown_voter_connections", text, len(view.voters) - connected)
    yield _gauge("raft_is_voting", "1 if this node votes.", view.is_voting)
    lag = GaugeMetricFamily("quorate_raft_voter_lag_records", "Records not durable at a voter.", labels=["voter"])
    contact = GaugeMetricFamily("quorate_raft_voter_contact_seconds", "Time since a voter answered.", labels=["voter"])
    for voter in sorted(view.voters.values(), key=lambda voter: voter.node_id):
        if voter.durable_end is not None:
            lag.add_metric([str(voter.node_id)], max(0, view.log_end_offset - voter.durable_end))
        if voter.last_contact_ms_ago is not None:
            contact.add_metric([str(voter.node_id)], voter.last_contact_ms_ago / 1000)
    yield lag
    yield contact


def _served(scrape: Scrape) -> Iterator[Metric]:
    yield _gauge("feed_followers", "Fetches of the metadata feed that wait or stream.", scrape.followers)
    yield _counter("feed_chunks_read", "Pieces of the log read for followers; each may go to many.", scrape.chunks_read)


async def take_scrape(node: Node) -> Scrape:
    """Read everything; the partitions are counted on another thread."""
    image = node.controller.stable
    counted = await node.counts.count(image)
    return Scrape(
        is_active=node.controller.is_active,
        applied_offset=node.controller.applied_offset,
        wall_ms=node.cluster.wall_ms(),
        image=image,
        partitions=counted.counts,
        quorum=node.cluster.quorum(),
        counters=node.cluster.counters(),
        deletions=node.operations.count_topic_deletions(),
        followers=node.feed.followers,
        chunks_read=node.feed.chunks_read,
    )


async def render_metrics(node: Node) -> bytes:
    """One scrape, in Prometheus' text form."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ScrapeCollector(await take_scrape(node)))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)
