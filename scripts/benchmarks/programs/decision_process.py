"""A fresh process that takes decisions on the metadata of a large cluster: no HTTP, no quorum, no disk.

What is timed is what the controller's loop does in a write event: decide, encode, and, for the passes, replay.
"""

from __future__ import annotations

import cProfile
import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from quorate.controller.brokers.fencing import decide_broker_heartbeat
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.decisions.record_slices import ROWS_PER_SLICE_MAX, slices_of
from quorate.controller.partitions.alter_partition import decide_alter_partition_columns
from quorate.controller.partitions.alter_partition_row import UNSAID_EPOCH
from quorate.controller.partitions.elections import decide_balance_leaders
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.controller.protocol.altered_partitions import AlterPartitionColumns
from quorate.metadata_log.batches.builder import counted, encode_items
from quorate.metadata_log.batches.columns import decode_body
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.scripts.benchmarks.large_cluster import BROKERS, FIRST_BROKER_ID, large_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.partition import RECOVERED
from quorate.snapshots.table.partition_columns import PartitionColumns
from quorate.snapshots.table.record_versions import PARTITION_NEWEST

_CONFIG: Final = default_parts(node_id=100, cluster_id="bench").config
_BROKER: Final = FIRST_BROKER_ID + BROKERS - 1
_EPOCH: Final = 1
#: Batches of so many partitions, and how many requests of each a run decides; its sample is their median.
_BATCHES: Final = ((1, 400), (100, 100), (10_000, 9))
_SEED: Final = 1

T = TypeVar("T")

_Found = dict[str, Any]


@dataclass(slots=True)
class _Clock:
    """Wall and processor time of the steps of one run, in seconds by name."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    def time(self, step: str, work: Callable[[], T]) -> T:
        """Do the work; its times are added to those of the step."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.wall[step] = self.wall.get(step, 0.0) + time.perf_counter() - wall
        self.cpu[step] = self.cpu.get(step, 0.0) + time.process_time() - cpu
        return result

    @property
    def wall_s(self) -> float:
        """Of all steps."""
        return sum(self.wall.values())

    @property
    def cpu_s(self) -> float:
        """Of all steps."""
        return sum(self.cpu.values())


def decisions(image: MetadataImage, runs: int) -> list[_Found]:
    """``alter_partition``: batches of ISR shrinks from one leader, decided and encoded one by one."""
    columns = image.partitions.gather(image.partitions.rows_led_by(_BROKER))
    random = np.random.default_rng(_SEED)
    found: list[_Found] = []
    for number in range(runs + 1):
        run: _Found = {}
        for asked_size, times in _BATCHES:
            size = min(asked_size, len(columns))
            starts = random.integers(0, len(columns) - size + 1, times)
            clocks = [_alter(image, _shrinks(columns, int(start), size)) for start in starts]
            run[str(asked_size)] = {
                "partitions": size,
                "wall_s": float(np.median([clock.wall_s for clock in clocks])),
                "cpu_s": float(np.median([clock.cpu_s for clock in clocks])),
            }
        if number:  # the first one warms up
            found.append(run)
    return found


def _shrinks(columns: PartitionColumns, start: int, size: int) -> AlterPartitionColumns:
    """Neighbours among the partitions that the broker leads, each of which is to lose the last member of its ISR."""
    part = slice(start, start + size)
    isr = np.ascontiguousarray(columns.slots[part, :-1])
    return AlterPartitionColumns(
        topic_ids=columns.topic_ids[part].copy(),
        partition_ids=columns.partition_ids[part].copy(),
        leader_epochs=columns.leader_epochs[part].copy(),
        partition_epochs=columns.partition_epochs[part].copy(),
        leader_recovery_states=np.full(size, RECOVERED, np.int8),
        new_isr=isr,
        new_isr_epochs=np.full(isr.shape, UNSAID_EPOCH, np.int64),
    )


def _alter(image: MetadataImage, asked: AlterPartitionColumns) -> _Clock:
    broker_epoch = image.cluster.brokers[_BROKER].epoch

    def work() -> int:
        decision = decide_alter_partition_columns(image, _CONFIG, _BROKER, broker_epoch, asked)
        items, count = counted(decision.records)
        encode_items(items, 0)
        return count

    clock = _Clock()
    changed = clock.time("decide and encode", work)
    assert changed == len(asked.partition_ids), f"{changed} of {len(asked.partition_ids)} partitions changed"
    return clock


def fencing(image: MetadataImage, runs: int) -> list[_Found]:
    """A heartbeat asks to fence a broker: its pass, slice by slice, as one turn of the loop after the other does it."""
    sessions = BrokerHeartbeats.of_image(image, _CONFIG.session_timeout_ms, 0)
    epoch = image.cluster.brokers[_BROKER].epoch
    request = BrokerHeartbeatRequest(broker_id=_BROKER, broker_epoch=epoch, current_metadata_offset=0, want_fence=True)
    found: list[_Found] = []
    for _ in range(runs):
        clock, pieces, state, changed = _Clock(), [], ReplayState(image), 0
        before = time.perf_counter()
        decision = clock.time("decide", partial(decide_broker_heartbeat, image, _CONFIG, sessions, request, 0))
        for part in decision.slices or slices_of(decision.records):
            items = clock.time("decide", partial(part, state.head))
            state, count = _written(clock, state, items)
            changed += count
            pieces.append(time.perf_counter() - before)
            before = time.perf_counter()
        found.append(_run(clock, pieces, changed - 1))
    return found


def balance(image: MetadataImage, runs: int) -> list[_Found]:
    """Passes of the leader balance until there is nothing left: leaderships that can go back, and some that cannot."""
    back, away = _led_by_others(image, is_in_sync=True), _led_by_others(image, is_in_sync=False)
    found: list[_Found] = []
    for _ in range(runs):
        run = _passes(back)
        run["away"] = _passes(away)
        found.append(run)
    return found


def _led_by_others(image: MetadataImage, *, is_in_sync: bool) -> MetadataImage:
    """The broker's partitions are led by their second replica; the broker is back in their ISRs, or still out."""
    rows = image.partitions.rows_led_by(_BROKER)
    columns = image.partitions.gather(rows)
    isr = None if is_in_sync else np.ascontiguousarray(columns.slots[:, 1:])
    run = PartitionChangeRun(
        version=PARTITION_NEWEST,
        topic_ids=columns.topic_ids,
        partition_ids=columns.partition_ids,
        leader=columns.slots[:, 1].copy(),
        isr=isr,
    )
    state = ReplayState(image)
    return state.replay_items([run], image.provenance.end_offset, _EPOCH, image.provenance.log_time_ms).head


def _passes(image: MetadataImage) -> _Found:
    clock, pieces, state = _Clock(), [], ReplayState(image)
    next_row: int | None = 0
    changed = 0
    while next_row is not None:
        before = time.perf_counter()
        decision = clock.time("decide", partial(decide_balance_leaders, state.head, _CONFIG, next_row))
        state, count = _written(clock, state, decision.records)
        changed += count
        next_row = decision.reply
        pieces.append(time.perf_counter() - before)
    return _run(clock, pieces, changed)


def _written(clock: _Clock, state: ReplayState, records: Sequence[BatchItem]) -> tuple[ReplayState, int]:
    """Do with the records of a decision as ``controller.engine.head`` does."""
    items, count = counted(records)
    if not count:
        return state, 0
    provenance = state.head.provenance
    data = clock.time("encode", lambda: encode_items(items, 0))
    after: ReplayState = clock.time(
        "replay",
        lambda: state.replay_items(decode_body(data, 0, count), provenance.end_offset, _EPOCH, provenance.log_time_ms),
    )
    return after, count


def _run(clock: _Clock, pieces: list[float], changed: int) -> _Found:
    return {
        "changed": changed,
        "pieces": len(pieces),
        "longest_s": max(pieces),
        "wall_s": sum(pieces),
        "cpu_s": clock.cpu_s,
        **{f"{step}_s": seconds for step, seconds in clock.wall.items()},
    }


_WORK: Final[dict[str, Callable[[MetadataImage, int], list[_Found]]]] = {
    "decisions": decisions,
    "fencing": fencing,
    "balance": balance,
}


def main(name: str, partitions: int, runs: int, profile_path: Path | None) -> None:
    """Print one line of JSON: what each run found, and the rows that a slice of a pass holds."""
    image = large_image(partitions)
    gc.collect()
    gc.freeze()
    profile = None if profile_path is None else cProfile.Profile(time.process_time)
    if profile is not None:
        profile.enable()
    found = _WORK[name](image, runs)
    if profile is not None and profile_path is not None:
        profile.disable()
        profile.dump_stats(profile_path)
    print(json.dumps({"runs": found, "rows_per_slice": ROWS_PER_SLICE_MAX}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]) if len(sys.argv) > 4 else None)
