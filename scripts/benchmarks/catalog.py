"""All benchmarks, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scripts.benchmarks import append, broker_loss, create, failover, load, restart, write_events
from scripts.benchmarks.figures import Outcome
from scripts.benchmarks.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of them."""

    name: str
    what: str
    run: Callable[[Workspace], Outcome]


BENCHMARKS: Final = (
    Benchmark("commit", "one write in flight through three controllers", write_events.run_commit),
    Benchmark("append", "durable commits a second of opaque 100-byte payloads, 512 in flight", append.run),
    Benchmark("throughput", "small write events a second, 512 in flight", write_events.run_throughput),
    Benchmark("broker-loss", "a quarter of 1,000,000 partitions changed everywhere", broker_loss.run),
    Benchmark("create", "topics through HTTP in bulk, up to 1,000,000 partitions", create.run),
    Benchmark("load", "image of 1,000,000 partitions from a checkpoint in a fresh process", load.run),
    Benchmark("restart", "three controllers with 1,000,000 partitions killed and started", restart.run),
    Benchmark("failover", "the active controller killed or frozen under writes", failover.run),
)
