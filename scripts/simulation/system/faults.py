"""The faults of a random run of the whole system: those of the quorum, and those of disks, wires and brokers."""

from __future__ import annotations

from typing import Final

from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.scripts.simulation.quorum.faults import RandomFaults, bit_that_shows
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.system.world import SystemWorld

#: Files whose bits flip.
_ROTTING: Final = (".log", ".checkpoint", QUORUM_STATE_NAME, MARK_NAME)


class SystemFaults(RandomFaults):
    """Schedules everything that goes wrong until the world heals."""

    _world: SystemWorld

    def __init__(self, world: SystemWorld) -> None:
        super().__init__(world)
        self._world = world

    def schedule(self) -> None:
        """Start all fault processes of the options."""
        super().schedule()
        world, options = self._world, self._world.system
        world.every(options.broker_kill_rate, self._kill_broker)
        world.every(options.broker_stop_rate, self._stop_broker)
        world.every(options.broker_freeze_rate, self._freeze_broker)
        world.every(options.cut_rate, self._cut)
        world.every(options.full_disk_rate, self._fill_disk)
        world.every(options.bit_flip_rate, self._flip_bit)

    def _kill_broker(self) -> None:
        broker = self._rng.choice(self._world.brokers)
        self._world.tell(f"broker {broker.broker_id} is killed")
        broker.kill()

    def _stop_broker(self) -> None:
        self._rng.choice(self._world.brokers).stop()

    def _freeze_broker(self) -> None:
        loop = self._rng.choice(self._world.brokers).loop
        if loop is not None and not loop.is_frozen:
            self._world.tell(f"{loop.who} is stopped")
            loop.freeze()
            self._world.scheduler.after(self._rng.expovariate(0.7), loop.thaw)

    def _fill_disk(self) -> None:
        """A disk has room for a little more for a while: the process ends, and ends again when it is started."""
        victim = self._any()
        victim.is_disk_failure_expected = True
        self._world.tell(f"the disk of controller {victim.node_id} fills up")
        victim.disk.capacity = victim.disk.used + self._rng.randint(0, 600)
        self._world.scheduler.after(self._rng.expovariate(1.0), self._make_room, victim)

    def _make_room(self, victim: SimulatedNode) -> None:
        victim.disk.capacity = None

    def _flip_bit(self) -> None:
        """A process ends, and one bit of what it leaves on its disk is another; never on so many that a majority is."""
        world, rng = self._world, self._rng
        victim = self._any()
        if victim.node is None or not self._may_lose(victim):
            return
        world.is_damage_expected = True
        world.crash(victim, False)
        files = [path for path in victim.disk.paths() if path.endswith(_ROTTING) and victim.disk.content(path)]
        path = rng.choice(files)
        position, bit = bit_that_shows(rng, path, victim.disk.content(path))
        world.tell(f"a bit flips on controller {victim.node_id}: {path}, byte {position}")
        world.checks.losing(victim)
        victim.disk.flip_bit(path, position, bit)
        world.amnesiac.add(victim.node_id)

    def _cut(self) -> None:
        """Nothing passes between some controllers or brokers and some brokers or clients, one way or both."""
        rng, world = self._rng, self._world
        others = [*world.broker_ids, *(client.client_id for client in world.clients)]
        servers = world.broker_ids if rng.random() < 0.3 else sorted(world.nodes)
        near = rng.sample(servers, rng.randint(1, len(servers)))
        far = rng.sample(others, rng.randint(1, len(others)))
        cut = {(one, other) for one in near for other in far}
        if rng.random() < 0.6:
            cut |= {(other, one) for one, other in cut}
        elif rng.random() < 0.5:
            cut = {(other, one) for one, other in cut}
        world.tell(f"nothing passes: {sorted(cut)}")
        world.network.cut |= cut
        world.scheduler.after(rng.expovariate(1.0), world.network.cut.difference_update, cut)
