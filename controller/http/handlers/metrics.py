"""`/metrics`: everything is computed when it is scraped, from the committed state and counters others keep anyway.

Names are Kafka's in Prometheus' form: ``kafka.controller:type=KafkaController,name=ActiveControllerCount`` is
``quorate_active_controller_count``; ``raft-metrics: current-epoch`` is ``quorate_raft_current_epoch``; times in
seconds, counters with ``_total``. The help text begins with Kafka's name where there is one. `docs/metrics.md` lists
them all, and a test holds it to what is served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from quorate.controller.api.answers.status_models import Protection, Verdict
from quorate.controller.api.resources import PartitionCounts
from quorate.controller.configs.features import SUPPORTED
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.connections.server_metrics import build_info, http_metrics
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.head_counters import HeadCounts
from quorate.controller.http.families import counter, counters, gauge, gauges, histogram, histograms
from quorate.controller.http.handlers.common import unprotected_by
from quorate.controller.http.handlers.feed_metrics import FeedScrape, feed_metrics, scrape_feed
from quorate.controller.http.handlers.raft_metrics import raft_metrics
from quorate.controller.http.handlers.views import broker_replies, quorum_reply
from quorate.controller.http.ports import Node, Peer, QuorumView
from quorate.controller.partitions.replica_deletions import DeletionCounts
from quorate.controller.reads.broker_reports import BrokerReport
from quorate.controller.reads.image_counts import Counted
from quorate.controller.reads.verdict import judge
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration

#: Event -> number of the state of Kafka's older controller. What it did not have is 0, as when it is idle.
CONTROLLER_STATES: Final = {
    "activation": 1,
    "alter_partition": 9,
    "alter_partition_reassignments": 5,
    "assign_replicas_to_dirs": 11,
    "balance_leaders": 6,
    "broker_heartbeat": 2,
    "controlled_shutdown": 8,
    "create_partitions": 3,
    "create_topics": 3,
    "delete_topics": 4,
    "elect_leaders": 7,
    "elect_unclean_leaders": 13,
    "fence_stale_broker": 2,
    "register_broker": 2,
    "unregister_broker": 2,
    "update_features": 17,
}
_HEARTBEATS: Final = ("broker_heartbeat", "controlled_shutdown")


@dataclass(frozen=True, slots=True)
class Scrape:
    """Everything that one scrape shows, read at one moment; nothing of it changes any more."""

    node_id: int
    is_active: bool
    applied_offset: int
    #: Name of the event that runs next; None when nothing waits.
    next_event: str | None
    queue_length: int
    wall_ms: float
    loop_busy_seconds: float
    digest_seconds: float
    image: MetadataImage
    counted: Counted
    quorum: QuorumView
    counters: Counters
    deletions: DeletionCounts
    head: HeadCounts
    feed: FeedScrape
    throttled_mutations: int
    #: Name of the error -> number of refusals.
    refusals: Mapping[str, int]
    audit_lines_dropped: int
    unprotected_by: Sequence[Protection]
    #: Broker id -> seconds since its last heartbeat; empty but on the active controller.
    silences: Sequence[tuple[int, float]]
    #: What brokers said of themselves, by id.
    reports: Mapping[int, BrokerReport]
    peers: Mapping[int, Peer]
    #: This node's own, a sentence each.
    faults: Sequence[str]
    http: HttpCounts


class ScrapeCollector(Collector):
    """A scrape in the library's form."""

    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        scrape = self._scrape
        yield build_info()
        yield from _judged(scrape)
        yield from _controller(scrape)
        yield from _image(scrape.image, scrape.counted.counts)
        yield from _features(scrape.image)
        yield gauges(
            "time_since_last_heartbeat_received_seconds",
            "TimeSinceLastHeartbeatReceivedMs: of brokers heard since this controller became active.",
            "broker",
            scrape.silences,
        )
        yield from _deletions(scrape.deletions)
        yield counter(
            "throttled_mutations",
            "Topics not created, grown or deleted, as their client had used up its controller_mutation_rate.",
            scrape.throttled_mutations,
        )
        text = "Requests that would have changed something, or lacked access, and things within requests, by error."
        yield counters("requests_refused", text, "error", sorted(scrape.refusals.items()))
        text = "Lines of the audit that could not be written: what was done then is nobody's."
        yield counter("audit_lines_dropped", text, scrape.audit_lines_dropped)
        text = "1 where this node's API goes without it."
        without = [(one, float(one in scrape.unprotected_by)) for one in get_args(Protection)]
        yield gauges("unprotected", text, "by", without)
        yield from _counted(scrape.counters)
        yield from http_metrics("quorate_", scrape.http)
        yield from _events(scrape)
        yield from _elections(scrape.head)
        yield from raft_metrics(scrape.quorum, scrape.node_id, scrape.counters, scrape.head)
        yield counter(
            "loop_busy_seconds",
            "poll-idle-ratio-avg is 1 minus the rate of this: processor time of the thread that does all of the work.",
            scrape.loop_busy_seconds,
        )
        text = "From 5 ms on: how long the thread that does all of the work served nobody, by cause."
        yield histograms("loop_standstill_seconds", text, "cause", scrape.counters.standstills.by_cause)
        yield counter("digest_seconds", "Processor time that digests of the state took.", scrape.digest_seconds)
        yield from feed_metrics(scrape.feed)


def _judged(scrape: Scrape) -> Iterator[Metric]:
    """Made here, on the scrape's thread: with two thousand brokers it takes some milliseconds."""
    view = scrape.quorum
    quorum = quorum_reply(scrape.image, scrape.node_id, view, scrape.peers, scrape.applied_offset)
    counted = scrape.counted
    brokers = broker_replies(scrape.image, scrape.reports, view.high_watermark, counted)
    verdict, _ = judge(quorum, brokers, counted.counts, scrape.faults, counted.unregistered)
    text = "1 for the verdict of status, as this node sees the cluster."
    yield gauges("cluster_verdict", text, "verdict", [(one, one == verdict) for one in get_args(Verdict)])
    yield gauge("faults", "Faults of this node that have not stopped it; status names them.", len(scrape.faults))


def _controller(scrape: Scrape) -> Iterator[Metric]:
    provenance = scrape.image.provenance
    lag = 0.0 if scrape.is_active or not provenance.log_time_ms else scrape.wall_ms - provenance.log_time_ms
    yield gauge("active_controller_count", "ActiveControllerCount: 1 on the active controller.", scrape.is_active)
    state = 0 if scrape.next_event is None else CONTROLLER_STATES.get(scrape.next_event, 0)
    yield gauge("controller_state", "ControllerState: number of what the controller is at; 0 when it is idle.", state)
    yield gauge(
        "last_applied_record_offset", "LastAppliedRecordOffset: last record in the state.", scrape.applied_offset - 1
    )
    yield gauge(
        "last_committed_record_offset",
        "LastCommittedRecordOffset: last record known to be committed.",
        scrape.quorum.high_watermark - 1,
    )
    yield gauge(
        "last_applied_record_timestamp_seconds",
        "LastAppliedRecordTimestamp: time of the last record in the state.",
        provenance.log_time_ms / 1000,
    )
    yield gauge(
        "last_applied_record_lag_seconds",
        "LastAppliedRecordLagMs: age of the last record in the state; 0 on the active controller.",
        max(0.0, lag / 1000),
    )


def _image(image: MetadataImage, partitions: PartitionCounts) -> Iterator[Metric]:
    brokers = image.cluster.brokers
    fenced = sum(broker.is_fenced for broker in brokers.values())
    leaving = sum(broker.in_controlled_shutdown for broker in brokers.values())
    found: Sequence[tuple[str, str, float]] = (
        ("fenced_broker_count", "FencedBrokerCount: registered brokers that are fenced.", fenced),
        ("active_broker_count", "ActiveBrokerCount: brokers that are not fenced.", len(brokers) - fenced),
        ("controlled_shutdown_broker_count", "ControlledShutdownBrokerCount: brokers that are leaving.", leaving),
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
            "delegation_tokens",
            "Delegation tokens, expired ones too; there is a limit.",
            len(image.delegation_tokens.tokens),
        ),
        ("labels", "Labels of all resources; there is a limit.", image.labels.count),
        (
            "current_metadata_version",
            "CurrentMetadataVersion: finalized level of metadata.version.",
            image.features.metadata_version,
        ),
    )
    for name, text, value in found:
        yield gauge(name, text, value)
    yield gauges(
        "broker_registration_state",
        "BrokerRegistrationState: 10 fenced, 20 in controlled shutdown, 30 active.",
        "broker",
        sorted((broker.id, _registration_state(broker)) for broker in brokers.values()),
    )


def _features(image: MetadataImage) -> Iterator[Metric]:
    finalized = sorted((name, float(level)) for name, level in image.features.levels.items())
    yield gauges("finalized_level", "FinalizedLevel: level of a feature in the log.", "feature", finalized)
    lowest = [(name, float(low)) for name, (low, _) in sorted(SUPPORTED.items())]
    highest = [(name, float(high)) for name, (_, high) in sorted(SUPPORTED.items())]
    yield gauges("minimum_supported_level", "MinimumSupportedLevel: lowest that can be acted on.", "feature", lowest)
    yield gauges("maximum_supported_level", "MaximumSupportedLevel: highest that can be acted on.", "feature", highest)


def _registration_state(broker: BrokerRegistration) -> int:
    if broker.is_fenced:
        return 10
    return 20 if broker.in_controlled_shutdown else 30


def _deletions(counts: DeletionCounts) -> Iterator[Metric]:
    """On a standby all are 0: what brokers say of deletions is soft state of the active controller."""
    found = (
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
    for name, text, value in found:
        yield gauge(name, text, value)


def _counted(counted: Counters) -> Iterator[Metric]:
    timeouts = counted.event_timeouts
    heartbeats = sum(timeouts.get(name, 0) for name in _HEARTBEATS)
    totals: Sequence[tuple[str, str, int]] = (
        ("event_queue_operations_started_count", "EventQueueOperationsStartedCount.", counted.events.started),
        ("event_queue_operations_timed_out_count", "EventQueueOperationsTimedOutCount.", sum(timeouts.values())),
        ("timed_out_broker_heartbeat_count", "TimedOutBrokerHeartbeatCount: heartbeats not begun in time.", heartbeats),
        ("new_active_controllers_count", "NewActiveControllersCount: leaders seen.", counted.new_active_controllers),
        ("metadata_error_count", "MetadataErrorCount: faults that did not stop the process.", counted.metadata_errors),
        ("handle_load_snapshot_count", "HandleLoadSnapshotCount: checkpoints loaded.", counted.checkpoints_loaded),
        ("checkpoints_failed", "Checkpoints that could not be written.", counted.checkpoints_failed),
        (
            "http_connections_refused",
            "Connections refused for their number or rate, or closed for others that asked.",
            counted.connections_refused,
        ),
        ("http_bodies_refused", "Bodies that there was no room for beside those in flight.", counted.bodies_refused),
        (
            "issuer_keys_refused",
            "Questions for an issuer's keys that no key set answered.",
            counted.issuer_keys_refused,
        ),
        ("digest_comparisons", "Comparisons of the state with other controllers'.", counted.digest_comparisons),
        ("digest_differences", "Those in which some states differed.", counted.digest_differences),
    )
    for name, text, value in totals:
        yield counter(name, text, value)
    text = "LatestSnapshotGeneratedBytes: size of the newest checkpoint; 0 while there is none."
    yield gauge("latest_snapshot_generated_bytes", text, counted.latest_checkpoint_bytes)
    text = "LatestSnapshotGeneratedAgeMs: age of the newest record in it; of the process while there is none."
    yield gauge("latest_snapshot_generated_age_seconds", text, counted.latest_checkpoint_age_seconds)
    text = "Until this node's certificate ends, negative when it has; +Inf: it has none."
    yield gauge("certificate_expiry_seconds", text, counted.certificate_expiry_seconds)
    text = "Until what was written to a file of the node's directory was durable."
    yield histogram("disk_sync_seconds", text, counted.disk_syncs)
    yield gauge("disk_free_bytes", "Room for this process on the disk of its directory.", counted.disk_free_bytes)
    text = "Keys by which tokens of the issuer at access.jwt.jwks_url are known."
    yield gauge("issuer_keys", text, counted.issuer_keys)
    answers = CounterMetricFamily("quorate_http_answers", "Answers by route and status.", labels=["route", "status"])
    for (route, status), count in sorted(counted.http_answers.items()):
        answers.add_metric([route, str(status)], count)
    yield answers
    text = "Connections closed for others: strangers', those of principals with too many, and who took no answers."
    yield counters("http_connections_displaced", text, "whose", sorted(counted.connections_displaced.items()))
    text = "Requests refused for what their senders showed, or did not."
    yield counters("authentication_failures", text, "shown", sorted(counted.failed_proofs.counts.items()))


def _events(scrape: Scrape) -> Iterator[Metric]:
    events = scrape.counters.events
    yield gauge("event_queue_length", "EventQueueSize: events that wait for their turn.", scrape.queue_length)
    yield histograms("event_queue_time_seconds", "EventQueueTimeMs: from queued to started.", "event", events.queue)
    yield histograms(
        "event_queue_processing_time_seconds",
        "EventQueueProcessingTimeMs: from started to done.",
        "event",
        events.processing,
    )


def _elections(head: HeadCounts) -> Iterator[Metric]:
    yield counters(
        "leader_elections",
        "LeaderElectionRateAndTimeMs, rate: partitions that got another leader, by kind of the election.",
        "kind",
        sorted(head.elections.items()),
    )
    yield histograms(
        "leader_election_time_seconds",
        "LeaderElectionRateAndTimeMs, time: from a decision that elects until its commit, by kind.",
        "kind",
        head.election_times,
    )
    text = "UncleanLeaderElectionsPerSec: partitions whose new leader may lack data."
    yield counter("unclean_leader_elections", text, head.unclean_elections)
    text = "Of the unclean ones, those whose leader is the last known one, back again."
    yield counter("last_known_leader_elections", text, head.last_known_elections)
    text = "ElectionFromEligibleLeaderReplicasPerSec: partitions whose new leader was eligible, not in sync."
    yield counter("election_from_eligible_leader_replicas", text, head.elections_from_eligible)


async def take_scrape(node: Node, http: HttpCounts) -> Scrape:
    """Read everything; the partitions are counted on another thread."""
    image = node.controller.stable
    counted = await node.counts.count(image)
    feed = await scrape_feed(node.feed)
    quorum = node.cluster.quorum()
    return Scrape(
        node_id=node.node_id,
        is_active=node.controller.is_active,
        applied_offset=node.controller.applied_offset,
        next_event=node.controller.events.next_name,
        queue_length=len(node.controller.events),
        wall_ms=node.cluster.wall_ms(),
        # The scrape runs on the thread that it asks about.
        loop_busy_seconds=time.thread_time(),
        digest_seconds=node.digests.spent_seconds,
        image=image,
        counted=counted,
        quorum=quorum,
        counters=node.cluster.refreshed_counters().copy(),
        deletions=node.operations.count_topic_deletions(),
        head=node.controller.head_watch.counts.copy(),
        feed=feed,
        throttled_mutations=node.operations.throttled_mutations(),
        refusals=dict(node.refusals.counts),
        audit_lines_dropped=node.audit.dropped,
        unprotected_by=unprotected_by(node),
        silences=_silences(node),
        reports=node.broker_reports.sessions(quorum.epoch),
        peers=node.peers,
        faults=node.cluster.faults(),
        http=http.copy(),
    )


def _silences(node: Node) -> list[tuple[int, float]]:
    if not node.controller.is_active:
        return []
    sessions = node.broker_reports.sessions(node.controller.epoch)
    return sorted((broker_id, session.last_heartbeat_ms_ago / 1000) for broker_id, session in sessions.items())


async def render_metrics(node: Node, http: HttpCounts) -> bytes:
    """One scrape, in Prometheus' text form. With two thousand sessions the text takes long: it is made on a thread."""
    return await asyncio.to_thread(_text, await take_scrape(node, http))


def _text(scrape: Scrape) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ScrapeCollector(scrape))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)
