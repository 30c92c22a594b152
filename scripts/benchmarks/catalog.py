"""All benchmarks, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorate.scripts.benchmarks.figures import BenchmarkOutcome
from quorate.scripts.benchmarks.nodes import (
    append,
    checkpoint,
    digest_watch,
    failover,
    load,
    rejoin,
    restart,
    stopped_follower,
    ten_million,
    write_events,
)
from quorate.scripts.benchmarks.protection import Safeguard
from quorate.scripts.benchmarks.requests import (
    answers,
    audit,
    authorizer,
    balance,
    broker_loss,
    commands,
    create,
    decisions,
    fencing,
    heartbeats,
    large_image,
    moves,
    no_ops,
    overload,
    search,
    single_create,
)
from quorate.scripts.benchmarks.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of them."""

    name: str
    what: str
    run: Callable[[Workspace], BenchmarkOutcome]
    #: Those whose price it shows.
    safeguards: frozenset[Safeguard] = frozenset()


_QUORUM: Final = frozenset({Safeguard.TLS})
_REQUESTS: Final = frozenset({Safeguard.TLS, Safeguard.ACLS})
_CHANGES: Final = frozenset(Safeguard)

BENCHMARKS: Final = (
    Benchmark("commit", "one write in flight through three controllers", write_events.run_commit, _QUORUM),
    Benchmark("append", "durable commits a second of opaque 100-byte payloads, 512 in flight", append.run, _QUORUM),
    Benchmark("throughput", "small write events a second, 512 in flight", write_events.run_throughput, _QUORUM),
    Benchmark("broker-loss", "a quarter of 1,000,000 partitions changed everywhere", broker_loss.run),
    Benchmark("create", "topics through HTTP in bulk, up to 1,000,000 partitions", create.run, _CHANGES),
    Benchmark("load", "image of 1,000,000 partitions from a checkpoint in a fresh process", load.run),
    Benchmark("restart", "three controllers with 1,000,000 partitions killed and started", restart.run),
    Benchmark("checkpoint", "2,000 commits a second beside checkpoints of 1,000,000 partitions", checkpoint.run),
    Benchmark("rejoin", "a wiped controller, and a new broker, with 1,000,000 partitions", rejoin.run),
    Benchmark("failover", "the active controller killed or frozen under writes", failover.run),
    Benchmark("decisions", "alter_partition decided and encoded, in batches of 1, 100 and 10,000", decisions.run),
    Benchmark("fencing", "a broker with 250,000 replicas fenced, in one process", fencing.run),
    Benchmark("balance", "leaderships given back among 1,000,000 partitions, in one process", balance.run),
    Benchmark("search", "first pages of partitions that fit a filter, among 1,000,000", search.run),
    Benchmark("answers", "what may be stopped among 1,000,000 partitions, in one process", answers.run),
    Benchmark("large-image", "answers about 10,000,000 partitions, and the loop meanwhile", large_image.run),
    Benchmark("moves", "plans of where the replicas of 1,000,000 partitions go, in one process", moves.run),
    Benchmark("commands", "command lines that operators wait for, each from its start to its end", commands.run),
    Benchmark("digest-watch", "nodes that compare their states, 1,000,000 partitions", digest_watch.run),
    Benchmark("audit", "writing down who asked, in one process", audit.run, frozenset({Safeguard.ACLS})),
    Benchmark("authorizer", "decisions by 100,000 ACLs, and one ACL more, in one process", authorizer.run),
    Benchmark("heartbeats", "2,000 brokers that are there, every 2 s", heartbeats.run, _REQUESTS),
    Benchmark("no-ops", "requests that write nothing, and are confirmed by a majority", no_ops.run),
    Benchmark("ten-million", "the life of a cluster of 10,000,000 partitions", ten_million.run),
    Benchmark("overload", "thousands of writes at once, on the active controller and on a standby", overload.run),
    Benchmark("stopped-follower", "what a leader keeps for a follower that is stopped", stopped_follower.run),
    Benchmark(
        "single-create", "topics created one by one over HTTP, one and 64 in flight", single_create.run, _CHANGES
    ),
)
