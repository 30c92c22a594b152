"""`/metrics` of a broker process, computed when it is scraped.

Where Kafka's brokers have a metric of the same meaning its name is used (``last-applied-record-offset`` is
``quorate_broker_last_applied_record_offset``). What comes from the rehearsal's model says in its help
that no data are moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from quorate.broker.host import BrokerHost
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.connections.server_metrics import build_info, http_metrics
from quorate.metadata_log.standstills import Standstills

_NO_DATA = "Rehearsal, no data are moved: "


class OwnFigures(NamedTuple):
    """The figures of the process, beside those of its brokers."""

    #: Milliseconds since 1970.
    wall_ms: float
    #: Until the certificate ends that is served with; None: there is none.
    certificate_left_s: float | None
    #: By its HTTP API, or closed there for others.
    connections_refused: int
    #: What that counts besides.
    http: HttpCounts
    standstills: Standstills


class _HostMetrics:
    def __init__(self, host: BrokerHost, own: OwnFigures) -> None:
        self._host = host
        self._own = own

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield build_info()
        yield from self._loading()
        yield from self._image()
        yield from self._brokers()
        yield from self._publishers()
        yield from self._replicas()
        text = "Until this process's certificate ends, negative when it has; +Inf: it has none."
        left_s = math.inf if self._own.certificate_left_s is None else self._own.certificate_left_s
        yield _gauge("certificate_expiry_seconds", text, left_s)
        text = "HTTP connections refused, or closed for others that asked: there are no more places."
        yield _counter("http_connections_refused", text, self._own.connections_refused)
        yield from http_metrics("quorate_broker_", self._own.http)
        text = "From 5 ms on: how long the loop that does all of the work served nobody, by cause."
        standstills = HistogramMetricFamily("quorate_broker_loop_standstill_seconds", text, labels=["cause"])
        for cause, times in self._own.standstills.by_cause.items():
            standstills.add_metric([cause], times.buckets(), times.total_seconds)
        yield standstills

    def _loading(self) -> Iterator[Metric]:
        loader = self._host.loader
        counters = loader.counters
        image = loader.image
        yield _gauge(
            "last_applied_record_offset",
            "last-applied-record-offset: last record in the image.",
            loader.last_applied_offset,
        )
        yield _gauge(
            "last_applied_record_timestamp_seconds",
            "last-applied-record-timestamp: time of the last record in the image.",
            image.provenance.log_time_ms / 1000,
        )
        lag_ms = max(0.0, self._own.wall_ms - image.provenance.log_time_ms) if image.provenance.log_time_ms else 0.0
        yield _gauge(
            "last_applied_record_lag_seconds",
            "last-applied-record-lag-ms: age of the last record in the image.",
            lag_ms / 1000,
        )
        yield _gauge("metadata_lag_records", "Committed records that are not in the image yet.", loader.lag or 0)
        yield _gauge("caught_up", "1 once the image has reached the high watermark.", loader.is_caught_up)
        yield _counter("metadata_batches", "Batches replayed.", counters.batches)
        yield _counter("metadata_bytes", "Bytes of batches replayed.", counters.bytes)
        yield _counter("metadata_replay_seconds", "Time spent checking and replaying.", counters.replay_ms / 1000)
        yield _counter("checkpoint_loads", "HandleLoadSnapshotCount: checkpoints loaded.", counters.checkpoint_loads)
        yield _counter(
            "feed_answers_refused",
            "metadata-load-error-count: answers of controllers that were not trusted.",
            counters.refused_answers,
        )
        yield _counter("feed_calls_failed", "Calls to a controller's feed that failed.", counters.failed_calls)
        yield _counter(
            "digest_seconds", "Processor time that digests of the state took.", self._host.digests.spent_seconds
        )
        yield _counter("feed_switches", "Moves from one controller's feed to another's.", counters.switches)

    def _image(self) -> Iterator[Metric]:
        cache, status = self._host.cache, self._host.loader.status
        leader = -1 if status is None or status.leader_id is None else status.leader_id
        yield _gauge("current_controller_id", "CurrentControllerId: the active controller; -1: none is known.", leader)
        level = cache.image.features.metadata_version
        yield _gauge("current_metadata_version", "CurrentMetadataVersion: level of metadata.version.", level)
        yield _gauge("image_alive_brokers", "Brokers of the cluster that are not fenced.", len(cache.alive_brokers()))
        yield _gauge("image_topics", "Topics of the cluster.", len(cache.image.topics))
        yield _gauge("image_partitions", "Partitions of the cluster.", len(cache.image.partitions))
        offline = cache.offline_partition_count()
        yield _gauge("image_offline_partitions", "Partitions of the cluster without a leader.", offline)

    def _brokers(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "quorate_broker_state", "1 for the state that a broker is in.", labels=["id", "state"]
        )
        ready = GaugeMetricFamily(
            "quorate_broker_ready", "1 if a broker runs and is unfenced in the image.", labels=["id"]
        )
        for broker in self._host.readiness():
            id_ = str(broker.broker_id)
            ready.add_metric([id_], broker.is_ready)
            for one in LifecycleState:
                state.add_metric([id_, one.value.replace(" ", "_")], one is broker.state)
        yield state
        yield ready

    def _publishers(self) -> Iterator[Metric]:
        errors = CounterMetricFamily(
            "quorate_broker_publisher_errors", "metadata-apply-error-count: calls that raised.", labels=["publisher"]
        )
        for state in self._host.publishers.states():
            errors.add_metric([state.publisher.name], state.error_count)
        yield errors

    def _replicas(self) -> Iterator[Metric]:
        report = self._host.replicas.report()
        said = "" if report.moves_data else _NO_DATA
        counters = report.counters
        yield _gauge("replicas_outside_isr", f"{said}replicas outside the ISR of what is led here.", report.outside)
        if report.copying is not None:
            yield _gauge("replicas_copying", f"{said}replicas here that lack what their leader has.", report.copying)
        yield _counter("isr_requests", "alter_partition requests sent.", counters.requests)
        yield _counter("isr_requests_failed", "Those that failed as a whole.", counters.failed_requests)
        answers = CounterMetricFamily(
            "quorate_broker_isr_answers", "Partitions answered, by error code.", labels=["error"]
        )
        for name, count in sorted(counters.answers.items()):
            answers.add_metric([name], count)
        yield answers


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"quorate_broker_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"quorate_broker_{name}", text, value=value)


def host_metrics(host: BrokerHost, own: OwnFigures) -> list[Metric]:
    """Those of one host, as of now. To be read on its loop, to which all of it belongs."""
    return list(_HostMetrics(host, own).collect())


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def render_metrics(metrics: list[Metric]) -> bytes:
    """One scrape, in Prometheus' text form, with the process's own. It may be made on a thread, and takes longest."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(metrics))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return generate_latest(registry)
