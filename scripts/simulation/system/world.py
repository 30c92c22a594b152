"""One run of the whole system: controllers, brokers and clients; its faults; and the end where everything heals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

from aiohttp import web_app

from quorate.broker.metadata.loader import LoaderFault
from quorate.metadata_log.errors import QuorateError
from quorate.quorum.config import QuorumConfig
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.quorum.world import World
from quorate.scripts.simulation.system.broker_process import BrokerProcess
from quorate.scripts.simulation.system.checks import SystemChecks
from quorate.scripts.simulation.system.controller_process import SimulatedController, url_of
from quorate.scripts.simulation.system.history import CallHistory
from quorate.scripts.simulation.system.http_wire import HttpWire, WireAnswer, WireRequest
from quorate.scripts.simulation.system.loop import VirtualLoop
from quorate.scripts.simulation.system.options import SystemOptions
from quorate.scripts.simulation.system.story import RunStory
from quorate.scripts.simulation.system.workload import AdminClient, TopicNames

FIRST_BROKER = 11
FIRST_CLIENT = 1001
#: How often, in virtual seconds, it is looked whether everything has come to rest.
_LOOK_SECONDS = 0.02


class SystemWorld(World):
    """All processes of one cluster in virtual time."""

    checks: SystemChecks

    def __init__(self, seed: int, system: SystemOptions, story: RunStory | None = None) -> None:
        self.system = system
        self._story = story
        self.history = CallHistory()
        #: Of all processes that ever were.
        self.loops: list[VirtualLoop] = []
        super().__init__(seed, system.quorum)
        self.wire = HttpWire(self)
        for node_id, node in self.nodes.items():
            self.wire.servers[url_of(node_id)] = cast("SimulatedController", node)
        self.topic_names = TopicNames(system.topics)
        self.broker_ids = [FIRST_BROKER + k for k in range(system.brokers)]
        self.brokers = [BrokerProcess(self, broker_id) for broker_id in self.broker_ids]
        self.wire.servers |= {url_of(broker.broker_id): broker for broker in self.brokers}
        self.clients = [AdminClient(self, FIRST_CLIENT + k) for k in range(system.clients)]

    def _make_checks(self) -> SystemChecks:
        return SystemChecks(self)

    def _make_node(self, config: QuorumConfig) -> SimulatedController:
        return SimulatedController(self, config)

    @property
    def controller_urls(self) -> list[str]:
        """The URL at which each controller serves HTTP."""
        return [url_of(node_id) for node_id in self.nodes]

    def broker(self, broker_id: int) -> BrokerProcess:
        """The process of a broker."""
        return self.brokers[broker_id - FIRST_BROKER]

    @property
    def controllers(self) -> list[SimulatedController]:
        return [cast("SimulatedController", node) for node in self.nodes.values()]

    def format(self) -> None:
        """Lay out the founding directories and start every process."""
        super().format()
        for broker in self.brokers:
            broker.start()
        for client in self.clients:
            client.start()

    def close(self) -> None:
        """Let go of everything that still waits."""
        with warnings.catch_warnings():
            # A request that was cancelled before its first line has a coroutine that nobody awaited.
            warnings.simplefilter("ignore", RuntimeWarning)
            for loop in self.loops:
                loop.bury()
        # The web framework remembers handlers, and through them every application that ever was.
        web_app._cached_build_middleware.cache_clear()

    def new_loop(self, who: str, rate: float, after_turn: Callable[[], None] = lambda: None) -> VirtualLoop:
        """The event loop of a process that begins."""
        # Abstract to a type checker: production calls none of what is missing.
        loop = VirtualLoop(  # type: ignore[abstract]
            self.scheduler, self.rng, who, rate, partial(self.trouble, who), after_turn
        )
        self.loops.append(loop)
        return loop

    def tell(self, what: str) -> None:
        """For the story of the run, if one is written."""
        if self._story is not None:
            self._story.add(self.scheduler.now, what)

    # --- what processes report -----------------------------------------------------------------------

    def is_lost(self) -> bool:
        """Whether the wire swallows what is on it now."""
        return bool(self.system.http_loss) and self.rng.random() < self.system.http_loss

    def answered(self, request: WireRequest, answer: WireAnswer) -> None:
        """A controller gives an answer."""
        if answer.status == 500:
            self.violation(f"{request.method} {request.path} was answered {answer.body.decode()}")
        # From 500 on an answer says that nothing is known of what it was asked, or that it may be asked again.
        self.checks.answered(request.headers["X-Request-Id"], is_claim=answer.status < 500)

    def trouble(self, who: str, what: str) -> None:
        """Something raised where nobody caught it."""
        self.violation(f"{who}: {what}")

    def broker_ended(self, broker: BrokerProcess, error: QuorateError) -> None:
        """A broker process gave up."""
        self.tell(f"broker {broker.broker_id} ends: {error}")
        if isinstance(error, LoaderFault):
            self.violation(f"broker {broker.broker_id} cannot follow: {error}")

    def opened(self, owner: SimulatedNode) -> None:
        super().opened(owner)
        assert owner.storage is not None
        damage = [*owner.storage.damage, *filter(None, [owner.storage.state_damage])]
        self.tell(f"controller {owner.node_id} starts{''.join(f'; damaged: {one}' for one in damage)}")
        if damage:
            self.amnesiac.add(owner.node_id)

    def fatal(self, owner: SimulatedNode, error: BaseException) -> None:
        self.tell(f"controller {owner.node_id} must stop: {error!r}")
        super().fatal(owner, error)

    # --- faults --------------------------------------------------------------------------------------

    def crash(self, owner: SimulatedNode, is_power_cut: bool) -> None:
        self.tell(f"controller {owner.node_id} {'loses its power' if is_power_cut else 'is killed'}")
        super().crash(owner, is_power_cut)

    def wipe(self, owner: SimulatedNode) -> None:
        self.tell(f"controller {owner.node_id} loses its disk")
        super().wipe(owner)

    def restart_broker_later(self, broker: BrokerProcess) -> None:
        """Somebody looks after brokers that are gone."""
        self.scheduler.after(0.1 if self.is_healed else self.rng.expovariate(1.0), broker.start)

    # --- the end -------------------------------------------------------------------------------------

    def heal(self) -> None:
        """End all faults."""
        self.tell("all faults end")
        self.system = replace(self.system, http_loss=0.0)
        for node in self.nodes.values():
            node.disk.capacity = None
        super().heal()
        for broker in self.brokers:
            if broker.loop is not None:
                broker.loop.thaw()
            broker.start()

    def converge(self) -> None:
        """Demand that everything comes to rest within bounded virtual time, and says the same."""
        self._wait("every request to be answered", lambda: all(client.is_done for client in self.clients))
        # What faults leave behind ends only now: a forgotten connection of the leader costs it its leadership, and
        # what it was asked its answer, as late as the silence is noticed.
        self._wait("all connections to be whole and all nodes level", self._is_whole)
        self.is_concluding = True
        for client in self.clients:
            client.conclude()
        self._wait("requests without faults to be answered", lambda: all(client.is_done for client in self.clients))
        self._wait("all nodes to be level and all brokers unfenced", self._is_level)
        self.checks.all_equal()
        self._raise_violation()
        problem, self.undecided = self.history.check()
        if problem is not None:
            raise Violation(problem)

    def _is_whole(self) -> bool:
        return self.network.is_whole() and self._is_level()

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        end = self.scheduler.now + self.options.heal_seconds
        while not condition():
            if self.scheduler.now > end:
                raise Violation(
                    f"{self.options.heal_seconds} s after all faults: waiting for {what}\n{self.describe()}"
                )
            self.run_for(_LOOK_SECONDS)

    def _is_level(self) -> bool:
        if not self._is_converged():
            return False
        leader = cast("SimulatedController", self.leaders()[0])
        end = leader.controller.applied_offset
        if not leader.controller.is_active or any(node.controller.pending_replies for node in self.controllers):
            return False
        image = leader.controller.stable
        return all(
            broker.is_ready
            and broker.host is not None
            and broker.host.loader.position.offset == end
            and broker.host.publishers.image is broker.host.loader.image
            and not image.cluster.brokers[broker.broker_id].is_fenced
            for broker in self.brokers
        )

    #: Whether every request must be answered now.
    is_concluding = False
    #: Topics whose history was too long to decide.
    undecided = 0

    def describe(self) -> str:
        """The state of every process, for a failing run."""
        lines = [super().describe()]
        for broker in self.brokers:
            state = "down" if broker.host is None else str(broker.host.readiness())
            trouble = "" if broker.host is None else f" {broker.host.loader.position} {broker.host.loader.trouble}"
            lines.append(f"  broker {broker.broker_id}: {state}{trouble}")
        lines += [f"  client {client.client_id}: {'done' if client.is_done else 'waits'}" for client in self.clients]
        return "\n".join(lines)
