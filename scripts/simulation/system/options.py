"""The options of one seed above the quorum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from quorate.scripts.simulation.quorum.options import Options, draw, sometimes_older


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """Rates are events per virtual second, probabilities per message."""

    #: Of the controllers' quorum, wire between controllers and disks.
    quorum: Options
    brokers: int = 3
    clients: int = 2
    topics: int = 3
    #: Requests of one client.
    request_rate: float = 9.0
    #: Virtual seconds of the fault phase.
    seconds: float = 5.0
    #: Requests and answers that the wire swallows.
    http_loss: float = 0.0
    broker_kill_rate: float = 0.0
    broker_stop_rate: float = 0.0
    broker_freeze_rate: float = 0.0
    #: Partitions between any processes, clients and brokers among them.
    cut_rate: float = 0.0
    full_disk_rate: float = 0.0
    bit_flip_rate: float = 0.0
    #: See ``CheckpointLimits``, ``ControllerLimits`` and ``FeedLimits``.
    checkpoint_bytes: int = 20 * 1024 * 1024
    checkpoint_interval_ms: float = 0.0
    queue_length_max: int = 10_000
    uncommitted_bytes_max: int = 64 * 1024 * 1024
    feed_bytes_max: int = 8 * 1024 * 1024


def draw_system(rng: Random) -> SystemOptions:
    """The options of a seed."""

    def sometimes(share: float, value: float) -> float:
        return value if rng.random() < share else 0.0

    quorum = draw(rng)
    # Its own writes, reads and checkpoints are the controllers' here; processes stay up long enough to do something.
    quorum = replace(
        quorum,
        voters=rng.choices((1, 3, 5), weights=(5, 80, 15))[0],
        write_rate=0.0,
        read_rate=0.0,
        checkpoint_rate=0.0,
        # A request that reads a file which cannot be read is answered 500: rightly, and it would end the run.
        is_looking_failing=False,
        rot_rate=0.0,
        crash_rate=quorum.crash_rate * 0.5,
        wipe_rate=quorum.wipe_rate * 0.5,
        retention_bytes=rng.choice((0, 6_000, 100 * 1024 * 1024)),
    )
    options = SystemOptions(
        quorum=quorum,
        brokers=rng.choice((3, 3, 4)),
        clients=rng.choice((1, 2, 3)),
        seconds=rng.choice((2.0, 3.0, 5.0)),
        topics=rng.choice((1, 2, 4)),
        request_rate=9.0 * 10 ** rng.uniform(-0.4, 0.4),
        http_loss=sometimes(0.4, rng.uniform(0.0, 0.05)),
        broker_kill_rate=sometimes(0.5, 0.3),
        broker_stop_rate=sometimes(0.4, 0.3),
        broker_freeze_rate=sometimes(0.3, 0.3),
        cut_rate=sometimes(0.5, 0.5),
        full_disk_rate=sometimes(0.25, 0.3),
        bit_flip_rate=sometimes(0.25, 0.2),
        checkpoint_bytes=rng.choice((2_000, 8_000, 20 * 1024 * 1024)),
        checkpoint_interval_ms=rng.choice((0.0, 1_500.0)),
        queue_length_max=rng.choice((3, 10_000)),
        uncommitted_bytes_max=rng.choice((2_000, 64 * 1024 * 1024)),
        feed_bytes_max=rng.choice((500, 8 * 1024 * 1024)),
    )
    return replace(options, quorum=replace(quorum, older_share=sometimes_older(rng)))
