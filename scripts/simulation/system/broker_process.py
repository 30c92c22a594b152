"""One broker process: what ``broker.assembly`` puts together, over the virtual wire and clock."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Final

from quorate.broker.assembly import assemble
from quorate.broker.controllers.controllers import BrokerRpc, ControllerFeed
from quorate.broker.environment import BrokerMachine
from quorate.broker.host import BrokerEnvironment, BrokerHost
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.publisher import Manifest, MetadataPublisher
from quorate.broker.replicas.peers import HttpPeers
from quorate.broker.settings import BrokerSettings, FeedSettings, LifecycleSettings, RehearsalSettings, ReplicaSettings
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.simulation.system.controller_process import WireClient, new_uuid
from quorate.scripts.simulation.system.http_wire import WireAnswer, WireRequest, WireServer, WireSession
from quorate.scripts.simulation.system.loop import VirtualLoop
from quorate.scripts.simulation.system.oracle import BrokerSessionId
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import EMPTY_DIGEST

if TYPE_CHECKING:
    from quorate.scripts.simulation.system.world import SystemWorld

_REQUEST_TIMEOUT_MS: Final = 700
#: Milliseconds since 1970 when a run begins.
_WALL_MS: Final = 1.7e12
_RACKS: Final = ("a", "b")


class BrokerProcess:
    """A broker while it runs, and what there is to do to it."""

    def __init__(self, world: SystemWorld, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.node_id = broker_id
        #: How often it was started: connections are to one life.
        self.incarnation = 0
        #: None while the process is down.
        self.http: WireServer | None = None
        self.loop: VirtualLoop | None = None
        self.host: BrokerHost | None = None
        self._settings = BrokerSettings(
            ids=(broker_id,),
            controllers=tuple(world.controller_urls),
            racks=(_RACKS[broker_id % 2],),
            lifecycle=LifecycleSettings(
                heartbeat_interval_ms=300,
                request_timeout_ms=_REQUEST_TIMEOUT_MS,
                retry_max_ms=500,
                registration_timeout_ms=20_000,
                shutdown_timeout_ms=3_000,
            ),
            feed=FeedSettings(wait_ms=300, answer_bytes_max=65_536, retry_max_ms=500),
            # Freezes and cuts last a second or so: some end before, some after.
            replicas=ReplicaSettings(lag_time_max_ms=1_000, interval_ms=100, timeout_ms=500, retry_max_ms=500),
            rehearsal=RehearsalSettings(partition_bytes=200, copy_bytes_per_s=1_000, write_bytes_per_s=500),
        )

    @property
    def is_up(self) -> bool:
        return self.loop is not None

    @property
    def is_ready(self) -> bool:
        """Whether it runs, and the image that it published shows it unfenced."""
        return self.host is not None and self.host.is_ready

    def counts_on_session_ms(self, broker_epoch: int) -> float:
        """The time, by its own clock, for which it will count on its session under this epoch; a frozen process,
        too.
        """
        if self.host is None or self.loop is None or self.broker_id not in self.host.sessions:
            return 0.0
        lifecycle = self.host.sessions[self.broker_id].lifecycle
        if lifecycle.broker_epoch != broker_epoch or lifecycle.state is LifecycleState.CONTROLLED_SHUTDOWN:
            return 0.0
        return max(0.0, lifecycle.lease.valid_until_ms - self.loop.time() * 1000)

    def session_and_known_end(self) -> tuple[BrokerSessionId | None, int]:
        """The session that it counts on now, if it does, and the end of what its image contains."""
        if self.host is None or self.broker_id not in self.host.sessions:
            return None, 0
        epoch = self.host.sessions[self.broker_id].lifecycle.broker_epoch
        is_counted_on = self.counts_on_session_ms(epoch) > 0
        session = BrokerSessionId(self.broker_id, epoch) if is_counted_on else None
        return session, self.host.publishers.image.provenance.end_offset

    def start(self, rate: float | None = None) -> None:
        """A new process, with nothing but the broker's id. ``rate``: of its clock; None: by chance."""
        world = self.world
        if self.loop is not None:
            return
        rng = Random(world.rng.getrandbits(64))
        if rate is None:
            rate = 1.0 + world.rng.uniform(-world.options.drift, world.options.drift)
        loop = world.new_loop(f"broker {self.broker_id}", rate, lambda: world.checks.counted_on(self))
        self.loop = loop
        self.incarnation += 1
        loop.spawn(self._live(loop, rng))

    def kill(self) -> None:
        """kill -9."""
        if self.loop is not None:
            self.loop.die()
            self._gone()

    def stop(self) -> None:
        """SIGTERM: a controlled shutdown."""
        if self.loop is not None and self.host is not None:
            self.loop.call_soon(self.host.request_stop)

    def _answered(self, request: WireRequest, answer: WireAnswer) -> None:
        if answer.status == 500:
            self.world.violation(f"{request.method} {request.path} was answered {answer.body.decode()}")
        self.world.checks.said.answered(request, answer)

    async def _live(self, loop: VirtualLoop, rng: Random) -> None:
        urls = list(self._settings.controllers)
        wire, timeout_ms = self.world.wire, self._settings.lifecycle.request_timeout_ms
        reader = WireClient(urls, WireSession(wire, self.broker_id), timeout_ms)
        caller = WireClient(urls, WireSession(wire, self.broker_id), timeout_ms)
        feeds = [ControllerFeed(reader, url, timeout_ms, self._settings.ids) for url in reader.urls]
        machine = BrokerMachine(
            now_ms=lambda: loop.time() * 1000,
            wall_ms=lambda: _WALL_MS + self.world.scheduler.now * 1000,
            sleep_ms=lambda ms: asyncio.sleep(ms / 1000),
            draw=rng.random,
            new_uuid=lambda: new_uuid(rng),
        )
        session = WireSession(wire, self.broker_id)
        peers = HttpPeers(lambda: session, None, self._settings.replicas.timeout_ms)
        rpc = BrokerRpc(caller, timeout_ms)
        environment = BrokerEnvironment(machine, feeds, rpc, peers, _PublisherFaults(self))
        assembly = assemble(self._settings, environment, [_ImageWatch(self)])
        self.host = assembly.host
        self.http = WireServer(wire, loop, assembly.http.app, session, self._answered)
        try:
            await assembly.run(Endpoint("127.0.0.1", self.broker_id))
        except QuorateError as error:
            self.world.broker_ended(self, error)
        finally:
            if self.loop is loop:
                loop.die()
                self._gone()

    def _gone(self) -> None:
        """Its connections end with it; somebody will start it again."""
        if self.http is not None:
            self.http.close(is_silent=False)
        self.loop = self.host = self.http = None
        self.world.restart_broker_later(self)


class _PublisherFaults:
    """``broker.publisher.PublisherFaults``: production goes on without the update, a run ends."""

    def __init__(self, owner: BrokerProcess) -> None:
        self._owner = owner

    def publisher_failed(self, publisher: str, method: str, error: BaseException) -> None:
        self._owner.world.violation(f"broker {self._owner.broker_id}: {publisher}.{method}: {error!r}")


class _ImageWatch(MetadataPublisher):
    """Compares every image that a broker publishes."""

    wants_every_offset = True

    def __init__(self, owner: BrokerProcess) -> None:
        self._owner = owner
        self._digest = EMPTY_DIGEST

    @property
    def name(self) -> str:
        return "image-watch"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        owner = self._owner
        self._digest = owner.world.checks.broker_image(owner.broker_id, image, self._digest)
