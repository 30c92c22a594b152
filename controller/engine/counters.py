"""Counters and timings of the parts of a controller process; nothing here knows how they are shown."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.engine.failed_proofs import FailedProofs
from quorate.metadata_log.standstills import Standstills

#: Upper ends in seconds: from one turn of the loop to what makes brokers lose their sessions.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """Counts of durations by bucket: half a microsecond an observation."""

    __slots__ = ("counts", "ends", "total_seconds")

    def __init__(self, ends: tuple[float, ...] = BUCKETS) -> None:
        """``ends``: the upper ends of the buckets, in seconds, ascending."""
        self.ends = ends
        self.counts = [0] * (len(ends) + 1)
        self.total_seconds = 0.0

    def note(self, seconds: float) -> None:
        """One more duration."""
        self.counts[bisect_left(self.ends, seconds)] += 1
        self.total_seconds += seconds

    def note_all(self, seconds: NDArray[np.float64]) -> None:
        """More durations: many of them cost a twentieth of ``note`` each."""
        places = np.searchsorted(self.ends, seconds)
        found = np.bincount(places, minlength=len(self.counts)).tolist()
        self.counts = [count + more for count, more in zip(self.counts, found, strict=True)]
        self.total_seconds += float(seconds.sum())

    def copy(self) -> Histogram:
        """As of now."""
        copied = Histogram(self.ends)
        copied.counts[:] = self.counts
        copied.total_seconds = self.total_seconds
        return copied

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them."""
        ends = [*map(str, self.ends), "+Inf"]
        cumulative = 0
        rows = []
        for end, count in zip(ends, self.counts, strict=True):
            cumulative += count
            rows.append((end, float(cumulative)))
        return rows


class EventTimes:
    """The times for which events waited and ran, by name; ``note`` fits ``EventQueue.observe``."""

    def __init__(self) -> None:
        self.queue: dict[str, Histogram] = {}
        self.processing: dict[str, Histogram] = {}
        self.started = 0

    def note(self, event: str, queue_ms: float, processing_ms: float) -> None:
        """An event has run."""
        self.started += 1
        if event not in self.queue:
            self.queue[event], self.processing[event] = Histogram(), Histogram()
        self.queue[event].note(queue_ms / 1000)
        self.processing[event].note(processing_ms / 1000)

    def copy(self) -> EventTimes:
        """As of now."""
        copied = EventTimes()
        copied.queue = {name: times.copy() for name, times in self.queue.items()}
        copied.processing = {name: times.copy() for name, times in self.processing.items()}
        copied.started = self.started
        return copied


@dataclass(slots=True)
class Counters:
    """The counters of all parts of a controller process; read at scrape."""

    events: EventTimes = field(default_factory=EventTimes)
    #: Events that waited too long for their turn, by name.
    event_timeouts: dict[str, int] = field(default_factory=dict)
    #: What the quorum's node counts, by name.
    quorum: dict[str, int] = field(default_factory=dict)
    #: From knowing of no leader until knowing of one.
    election_latency: Histogram = field(default_factory=Histogram)
    #: Records taken over from leaders, and appended as leader.
    fetched_records: int = 0
    appended_records: int = 0
    #: Of the files in the node's directory: how long the disk took to make what was written durable.
    disk_syncs: Histogram = field(default_factory=Histogram)
    #: Room for this process on the disk of its directory.
    disk_free_bytes: int = 0
    new_active_controllers: int = 0
    metadata_errors: int = 0
    checkpoints_loaded: int = 0
    #: Attempts to write one that failed.
    checkpoints_failed: int = 0
    #: Comparisons of this node's state with other controllers', and those in which some differed.
    digest_comparisons: int = 0
    digest_differences: int = 0
    #: 0: there is none.
    latest_checkpoint_bytes: int = 0
    #: Of the process while there is none.
    latest_checkpoint_age_seconds: float = 0.0
    #: Until this node's certificate ends, negative when it has; inf: it has none.
    certificate_expiry_seconds: float = float("inf")
    #: Keys by which tokens of an issuer are known that has an address, and answers there that were no key set.
    issuer_keys: int = 0
    issuer_keys_refused: int = 0
    #: HTTP connections that were refused, or closed for others that asked.
    connections_refused: int = 0
    #: Bodies that there was no room for.
    bodies_refused: int = 0
    #: Of the connections, those that were closed for others, by whose they were.
    connections_displaced: dict[str, int] = field(default_factory=lambda: {"principal": 0, "reader": 0, "stranger": 0})
    #: Requests that were refused for what their senders showed.
    failed_proofs: FailedProofs = field(default_factory=FailedProofs)
    #: Of the loop that all of them run on.
    standstills: Standstills = field(default_factory=Standstills)
    #: (route, status) -> number of answers.
    http_answers: dict[tuple[str, int], int] = field(default_factory=dict)

    def note_answer(self, answer: tuple[str, int]) -> None:
        """An HTTP request was answered: its route, and the answer's status."""
        self.http_answers[answer] = self.http_answers.get(answer, 0) + 1

    def copy(self) -> Counters:
        """As of now. Written out: ``copy.deepcopy`` takes 2 ms, which the loop waits for at every scrape."""
        return replace(
            self,
            events=self.events.copy(),
            event_timeouts=self.event_timeouts.copy(),
            quorum=self.quorum.copy(),
            election_latency=self.election_latency.copy(),
            disk_syncs=self.disk_syncs.copy(),
            connections_displaced=self.connections_displaced.copy(),
            failed_proofs=self.failed_proofs.copy(),
            standstills=self.standstills.copy(),
            http_answers=self.http_answers.copy(),
        )
