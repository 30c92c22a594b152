"""The options of one seed: each run switches some faults off and turns others up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from quorate.scripts.simulation.machine.memory_disk import CrashPolicy

_CRASH_POLICIES: Final = (
    CrashPolicy.MIXED,
    CrashPolicy.NOTHING,
    CrashPolicy.TORN,
    CrashPolicy.EVERYTHING,
    CrashPolicy.PAGES,
)
#: A bound that no run comes near.
_PLENTY: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """Rates are events per virtual second, probabilities per message, delays seconds."""

    voters: int = 3
    #: Fault phase: at least this many events.
    events: int = 2600
    write_rate: float = 60.0
    payload_bytes_max: int = 120
    #: Writes of any size up to the largest that can be appended, among the others.
    large_writes: int = 0
    read_rate: float = 10.0
    delay_mean: float = 0.001
    #: Whether a connection delivers everything in order, however late.
    is_stream: bool = False
    loss: float = 0.0
    duplication: float = 0.0
    is_reordering: bool = False
    #: Of frames that arrive with other bytes.
    damage: float = 0.0
    disk_delay_mean: float = 0.0003
    slow_disk_rate: float = 0.0
    #: Share of the short disk groups that a node runs at once, on its loop thread.
    inline_share: float = 0.0
    #: Share of those that hold up the node.
    stall_share: float = 0.0
    crash_rate: float = 0.0
    power_cut_share: float = 0.5
    crash_policy: CrashPolicy = CrashPolicy.MIXED
    #: Seconds that a crashed node stays down, on average.
    downtime_mean: float = 0.8
    break_rate: float = 0.0
    forget_rate: float = 0.0
    partition_rate: float = 0.0
    freeze_rate: float = 0.0
    sync_failure_rate: float = 0.0
    #: Of disks one of whose next calls fails, whatever it is.
    disk_failure_rate: float = 0.0
    #: Whether those that only look may fail, too.
    is_looking_failing: bool = True
    disk_hang_rate: float = 0.0
    #: Of bits that flip on the disk of a process that runs.
    rot_rate: float = 0.0
    #: Share of the starts that end in the middle of recovery.
    recovery_crash_share: float = 0.0
    wipe_rate: float = 0.0
    resign_rate: float = 0.0
    checkpoint_rate: float = 0.0
    #: Log and checkpoint bytes kept; below it, all checkpoints but the newest go.
    retention_bytes: int = 100 * 1024 * 1024
    drift: float = 0.0
    #: Each wall clock is off by at most so much; jumps draw it anew.
    clock_error_ms: int = 0
    clock_jump_rate: float = 0.0
    segment_bytes: int = 64 * 1024 * 1024
    resident_bytes: int = 64 * 1024 * 1024
    apply_batches: int = 1024
    append_bytes: int = 1024 * 1024
    chunk_bytes: int = 1024 * 1024
    #: See ``QuorumLimits``.
    inflight_bytes: int = 32 * 1024 * 1024
    pass_bytes: int = 4 * 1024 * 1024
    #: Bytes of batches that may wait for a node's disk.
    unwritten_bytes: int = _PLENTY
    #: Writes that are demanded, behind the fault phase, while a majority is well and the others are not.
    sick_minority_writes: int = 0
    #: Share of the starts of a process of the release before, which does not know the newest version of messages.
    older_share: float = 0.0
    #: Virtual seconds within which everything must have converged after it healed.
    heal_seconds: float = 60.0


def draw(rng: Random) -> Options:
    """The options that the quorum of a seed plays with, alone or under the whole system."""
    voters = rng.choices((1, 3, 5), weights=(6, 64, 30))[0]
    # Only from five voters on are the others more than a majority: that is where forgotten votes are tried hardest.
    wipe_rate = _scaled(rng, 1.5) if voters == 5 and rng.random() < 0.5 else _sometimes(rng, 0.25, _scaled(rng, 0.3))
    options = Options(
        voters=voters,
        write_rate=_scaled(rng, 60.0),
        payload_bytes_max=rng.choice((40, 120, 2000)),
        read_rate=_scaled(rng, 8.0),
        delay_mean=_scaled(rng, 0.0015),
        loss=_sometimes(rng, 0.4, rng.uniform(0.0, 0.08)),
        duplication=_sometimes(rng, 0.4, rng.uniform(0.0, 0.1)),
        is_reordering=rng.random() < 0.3,
        disk_delay_mean=_scaled(rng, 0.0006),
        slow_disk_rate=_sometimes(rng, 0.4, 0.4),
        crash_rate=_sometimes(rng, 0.75, _scaled(rng, 0.8)),
        power_cut_share=rng.random(),
        crash_policy=rng.choice(_CRASH_POLICIES),
        downtime_mean=_scaled(rng, 0.5),
        break_rate=_sometimes(rng, 0.5, _scaled(rng, 1.0)),
        partition_rate=_sometimes(rng, 0.5, _scaled(rng, 0.6)),
        freeze_rate=_sometimes(rng, 0.4, _scaled(rng, 0.4)),
        sync_failure_rate=_sometimes(rng, 0.25, _scaled(rng, 0.3)),
        wipe_rate=wipe_rate,
        resign_rate=_sometimes(rng, 0.2, _scaled(rng, 0.4)),
        checkpoint_rate=_sometimes(rng, 0.5, _scaled(rng, 1.5)),
        retention_bytes=rng.choice((0, 3000, 100 * 1024 * 1024)),
        drift=_sometimes(rng, 0.4, 0.1),
        segment_bytes=rng.choice((2000, 20_000, 64 * 1024 * 1024)),
        resident_bytes=rng.choice((0, 3000, 64 * 1024 * 1024)),
        apply_batches=rng.choice((2, 17, 1024)),
        append_bytes=rng.choice((300, 4000, 1024 * 1024)),
        chunk_bytes=rng.choice((64, 500, 1024 * 1024)),
        inline_share=rng.choice((0.0, 0.5, 1.0)),
        stall_share=_sometimes(rng, 0.4, 0.01),
        is_stream=rng.random() < 0.5,
        forget_rate=_sometimes(rng, 0.3, _scaled(rng, 0.5)),
        clock_error_ms=rng.choice((0, 30, 3_600_000)),
        clock_jump_rate=_sometimes(rng, 0.5, _scaled(rng, 1.0)),
        unwritten_bytes=rng.choice((5_000, _PLENTY, _PLENTY)),
    )
    return replace(
        options,
        disk_failure_rate=_sometimes(rng, 0.3, _scaled(rng, 0.6)),
        disk_hang_rate=_sometimes(rng, 0.3, _scaled(rng, 0.4)),
        rot_rate=_sometimes(rng, 0.2, _scaled(rng, 0.3)),
        recovery_crash_share=_sometimes(rng, 0.4, 0.5),
    )


def draw_alone(rng: Random) -> Options:
    """The options of a seed of the quorum alone: with what is of no use, or too much, under the whole system."""
    options = draw(rng)
    options = replace(
        options,
        sick_minority_writes=rng.choice((0, 0, 8)),
        large_writes=rng.choice((0,) * 15 + (3,)),
        damage=_sometimes(rng, 0.25, _scaled(rng, 0.003)),
        inflight_bytes=rng.choice((3_000, options.inflight_bytes)),
        pass_bytes=rng.choice((1_000, options.pass_bytes)),
    )
    older_share = sometimes_older(rng)
    # What is no message any more is known of those of the newest version.
    return replace(options, older_share=older_share, damage=0.0 if older_share else options.damage)


def sometimes_older(rng: Random) -> float:
    """``Options.older_share`` of a seed."""
    return _sometimes(rng, 0.3, 0.5)


def _sometimes(rng: Random, share: float, value: float) -> float:
    return value if rng.random() < share else 0.0


def _scaled(rng: Random, base: float) -> float:
    return float(base * 10 ** rng.uniform(-0.7, 0.7))
