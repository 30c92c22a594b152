"""The faults of a random run, each at its own rate."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from quorate.metadata_log.batches.batch import LOG_OVERHEAD_BYTES
from quorate.scripts.simulation.quorum.host import DIRECTORY, SimulatedNode
from quorate.scripts.simulation.quorum.world import World

#: Files whose bits flip under a process that runs.
ROTTING: Final = (".log", ".checkpoint")
#: In a batch: its leader epoch, and the byte behind it.
_EPOCH_AT: Final = LOG_OVERHEAD_BYTES
_EPOCH_END: Final = LOG_OVERHEAD_BYTES + 4


class RandomFaults:
    """Schedules everything that goes wrong in one phase of a run."""

    def __init__(self, world: World, victims: Sequence[SimulatedNode] = ()) -> None:
        """``victims``: whom it befalls, and whose connections; all nodes if there are none."""
        self._world = world
        self._rng = world.rng
        self._victims = list(victims or world.nodes.values())

    def schedule(self) -> None:
        """Start all fault processes of the options."""
        world, options = self._world, self._world.options
        world.every(options.crash_rate, self._crash)
        world.every(options.break_rate, self._break)
        world.every(options.forget_rate, self._forget)
        world.every(options.partition_rate, self._partition)
        world.every(options.freeze_rate, self._freeze)
        world.every(options.slow_disk_rate, self._slow_disk)
        world.every(options.sync_failure_rate, self._fail_sync)
        world.every(options.disk_failure_rate, self._fail_call)
        world.every(options.disk_hang_rate, self._hang)
        world.every(options.rot_rate, self._rot)
        world.every(options.wipe_rate, self._wipe)
        world.every(options.resign_rate, self._resign)
        world.every(options.clock_jump_rate, lambda: self._any().set_clock())

    def _any(self) -> SimulatedNode:
        return self._rng.choice(self._victims)

    def _leaders(self) -> list[SimulatedNode]:
        return [leader for leader in self._world.leaders() if leader in self._victims]

    def _touching(self, pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Those of which one is a victim."""
        ids = {victim.node_id for victim in self._victims}
        return {pair for pair in pairs if not ids.isdisjoint(pair)}

    def _crash(self) -> None:
        rng, world = self._rng, self._world
        victims = [self._any()]
        if rng.random() < 0.15:
            victims = self._victims
        elif rng.random() < 0.3:
            victims = self._leaders() or victims
        for victim in victims:
            world.crash(victim, rng.random() < world.options.power_cut_share)

    def _pair(self) -> tuple[int, int] | None:
        ids = sorted(self._world.nodes)
        if len(ids) < 2:
            return None
        one, other = self._rng.sample(ids, 2)
        return (one, other) if self._touching({(one, other)}) else None

    def _break(self) -> None:
        pair = self._pair()
        if pair is not None:
            self._world.network.break_connection(*pair)

    def _forget(self) -> None:
        """A router between two nodes forgets their connection, and says so to nobody."""
        pair = self._pair()
        if pair is not None:
            self._world.network.forget(*pair)

    def _partition(self) -> None:
        rng, network = self._rng, self._world.network
        ids = sorted(self._world.nodes)
        if len(ids) < 2:
            return
        kind = rng.random()
        if kind < 0.4:
            one, other = rng.sample(ids, 2)
            cut = {(one, other)} if rng.random() < 0.6 else {(one, other), (other, one)}
        else:
            group = set(rng.sample(ids, rng.randint(1, len(ids) - 1)))
            cut = {(a, b) for a in group for b in ids if b not in group}
            if kind < 0.85:
                cut |= {(b, a) for a, b in cut}
        cut = self._touching(cut)
        network.cut |= cut
        if rng.random() < 0.4:
            for one, other in sorted(cut):
                network.break_connection(one, other)
        self._world.scheduler.after(rng.expovariate(1.0), network.cut.difference_update, cut)

    def _freeze(self) -> None:
        victims = self._leaders() if self._rng.random() < 0.5 else [self._any()]
        for victim in victims:
            if victim.node is not None and not victim.is_frozen:
                victim.freeze()
                self._world.scheduler.after(self._rng.expovariate(0.9), victim.thaw)

    def _slow_disk(self) -> None:
        victim = self._any()
        victim.disk_slowness = self._rng.choice((5.0, 30.0, 100.0))
        self._world.scheduler.after(self._rng.expovariate(1.5), self._restore_disk, victim)

    def _restore_disk(self, victim: SimulatedNode) -> None:
        victim.disk_slowness = 1.0

    def _fail_sync(self) -> None:
        victim = self._any()
        if victim.node is None:
            return
        logs = [path for path in victim.disk.paths() if path.startswith(DIRECTORY) and path.endswith(".log")]
        victim.is_disk_failure_expected = True
        victim.disk.fail_next_sync(logs[-1] if logs and self._rng.random() < 0.7 else DIRECTORY)

    def _fail_call(self) -> None:
        victim = self._any()
        victim.is_disk_failure_expected = True
        spares_looking = not self._world.options.is_looking_failing or self._rng.random() < 0.5
        victim.trouble.fail_soon(self._rng.randint(0, 40), spares_looking=spares_looking)

    def _hang(self) -> None:
        """A disk finishes nothing for a while."""
        victim = self._any()
        victim.hang_disk(is_bulk_hung=self._rng.random() < 0.7)
        self._world.scheduler.after(min(self._rng.expovariate(0.7), 10.0), victim.wake_disk)

    def _may_lose(self, victim: SimulatedNode) -> bool:
        """Whether a node may lose its memory: never so many that a majority has."""
        lost = self._world.amnesiac | self._world.rotten
        return victim.node_id not in lost and len(lost) < (len(self._world.nodes) - 1) // 2

    def _wipe(self) -> None:
        world, victim = self._world, self._any()
        if not self._may_lose(victim):
            return
        was_up = victim.node is not None
        world.wipe(victim)
        if was_up:
            world.scheduler.after(self._rng.choice((0.0, 0.3)), world.restart, victim)

    def _rot(self) -> None:
        """One bit of a file is another, and its process goes on until it reads it, or is started again."""
        world, victim = self._world, self._any()
        files = [path for path in victim.disk.paths() if path.endswith(ROTTING) and victim.disk.content(path)]
        if victim.node is None or not files or not self._may_lose(victim):
            return
        world.is_damage_expected = True
        world.checks.losing(victim)
        world.rotten.add(victim.node_id)
        path = self._rng.choice(files)
        victim.disk.flip_bit(path, *bit_that_shows(self._rng, path, victim.disk.content(path)))

    def _resign(self) -> None:
        for leader in self._leaders():
            assert leader.node is not None
            leader.node.resign(leader.node.epoch)
            self._world.after_event(leader)


def bit_that_shows(rng: Random, path: str, content: bytes) -> tuple[int, int]:
    """A byte of a file and a bit in it that some checksum covers: all but a batch's leader epoch in a segment.

    Kafka's CRC begins behind that field. An epoch that fits between its neighbours' cannot be told from the true one.
    """
    while True:
        position = rng.randrange(len(content))
        if not (path.endswith(".log") and _EPOCH_AT <= position - _start_of_batch(content, position) < _EPOCH_END):
            return position, rng.randrange(8)


def _start_of_batch(content: bytes, position: int) -> int:
    start = 0
    while True:
        size = LOG_OVERHEAD_BYTES + int.from_bytes(content[start + 8 : start + LOG_OVERHEAD_BYTES])
        if start + size > position:
            return start
        start += size
