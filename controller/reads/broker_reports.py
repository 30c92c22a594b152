"""The latest reports from brokers' heartbeats, for reading: soft state of the active controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """The last report of one broker."""

    #: Exclusive end of what it had applied.
    applied_offset: int
    last_heartbeat_ms_ago: float


class BrokerReports:
    """The last accepted heartbeat of each broker in one epoch. Owned by the loop thread."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._epoch = -1
        #: Broker id -> exclusive end of what it had applied, and when it said so.
        self._heard: dict[int, tuple[int, float]] = {}

    def note(self, epoch: int, broker_id: int, last_applied_offset: int) -> None:
        """A heartbeat was accepted by the controller that is active in ``epoch``."""
        if epoch != self._epoch:
            self._heard = {}
            self._epoch = epoch
        self._heard[broker_id] = last_applied_offset + 1, self._monotonic_ms()

    def ms_ago(self, broker_id: int) -> float | None:
        """The time since a broker was heard of; None where it was not, in the last epoch. From any thread."""
        heard = self._heard.get(broker_id)
        return None if heard is None else self._monotonic_ms() - heard[1]

    def sessions(self, epoch: int) -> Mapping[int, BrokerReport]:
        """By broker id; empty for every epoch but the one in which this node was active last."""
        if epoch != self._epoch:
            return {}
        now_ms = self._monotonic_ms()
        return {id_: BrokerReport(offset, now_ms - at_ms) for id_, (offset, at_ms) in self._heard.items()}
