"""From where on something is an incident; every number is an option of the job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

#: Rows of single partitions that a report holds; the tables have them all.
ROWS_MAX: Final = 1_000
#: An instant of fewer changes is not looked at when mass events are joined: a tenth of the threshold.
INSTANT_SHARE: Final = 10


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Defaults suit clusters of thousands of partitions; in a small cluster lower ``mass_partitions``."""

    #: An instant that changes at least so many partitions is a mass event.
    mass_partitions: int = 100
    #: Mass instants of one kind and broker that follow each other within this time are one event.
    mass_gap: timedelta = timedelta(seconds=10)
    #: A loss this near to a broker's fencing, shutdown or lost directory has it as its cause.
    same_event: timedelta = timedelta(seconds=5)
    #: A partition whose ISR has shrunk and grown again more often than this within ``flap_window`` flaps.
    flaps: int = 3
    flap_window: timedelta = timedelta(minutes=10)
    #: A reassignment that took longer, or is open for longer, is slow.
    slow_reassignment: timedelta = timedelta(minutes=10)
    #: ``min.insync.replicas`` where the log has no value for it: brokers' own files are not in it.
    min_isr: int = 1
