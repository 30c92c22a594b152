"""The rehearsal's replica manager: followers that say how far they are, leaders that believe them; no data at all.

Both sides of the exchange for all brokers of this process. What a replica holds is a model of sizes and rates
(``stand_in``); that its process lives, and can speak with its leader's, is real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from quorate.broker.environment import BrokerMachine
from quorate.broker.own_tasks import OwnTasks
from quorate.broker.publisher import Manifest
from quorate.broker.replicas.attended import AttendedClock
from quorate.broker.replicas.follower import FollowerCore, Link
from quorate.broker.replicas.isr_requests import IsrRequests
from quorate.broker.replicas.leader import LeaderCore
from quorate.broker.replicas.manager import ReplicaManager, ReplicaReport, Station
from quorate.broker.replicas.mass_change import MassChange
from quorate.broker.replicas.messages import (
    FollowAnswer,
    FollowMessage,
    decode_answer,
    decode_message,
    encode_answer,
    encode_message,
)
from quorate.broker.replicas.peers import LOCAL, PeerAddresses, PeerCalls, host_and_port
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.broker.replicas.waiting_images import IMAGES_HELD_MAX, WaitingImages
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

log = structlog.get_logger(__name__)

#: What every output of it says.
NOTICE: Final = "rehearsal: no data are moved; how much a replica holds is a model, that its process lives is not"
#: A wait that is no shorter than this lets others have their turn.
_WAIT_MIN_MS: Final = 1.0
#: So long nobody looks, in silence, how much waits by now.
_LOOK_MS: Final = 50.0


@dataclass(frozen=True, slots=True)
class ExchangeTiming:
    """Milliseconds."""

    #: How long an ISR member may go without being caught up (Kafka's replica.lag.time.max.ms).
    lag_max_ms: float
    #: Between two messages that have nothing new to say (Kafka's replica.fetch.wait.max.ms).
    interval_ms: float
    #: Longest wait between two attempts to reach a process.
    retry_max_ms: float


class RehearsalReplicas(ReplicaManager):
    """See the module."""

    def __init__(
        self,
        model: StandInLog,
        pace: Pace,
        timing: ExchangeTiming,
        peers: PeerCalls,
        addresses: PeerAddresses,
        machine: BrokerMachine,
    ) -> None:
        super().__init__()
        self._model = model
        self._timing = timing
        self._peers = peers
        self._addresses = addresses
        self._machine = machine
        # Looked at in every turn of ``run``, which comes after every interval at the latest.
        self._clock = AttendedClock(machine.now_ms, 2 * timing.interval_ms)
        self._leader = LeaderCore(model, timing.lag_max_ms)
        self._follower = FollowerCore(
            pace, timing.interval_ms, timing.retry_max_ms, self._new_session, machine.now_ms()
        )
        self._mass_change = MassChange(timing.lag_max_ms, timing.interval_ms)
        #: When followers here had nothing left to say last.
        self._all_said_ms = machine.now_ms()
        #: The last that was taken: what is said to others is said of it.
        self._image = EMPTY_IMAGE
        #: Later ones. To be told of a mass change takes as long as to replay it or longer, and nothing is said while it
        #: arrives.
        self._waiting = WaitingImages()
        self._end_offset = 0
        self._played: frozenset[int] = frozenset()
        self._requests: IsrRequests

    @property
    def name(self) -> str:
        return "rehearsal-replicas"

    @property
    def pace(self) -> Pace:
        """The pace at which replicas here copy."""
        return self._follower.pace

    def set_pace(self, pace: Pace) -> None:
        """Copy at another rate from now on, or not at all."""
        self._follower.set_pace(pace, self._machine.now_ms())
        log.info("replicas.pace", copy_bytes_per_s=pace.copy_bytes_per_s, is_stalled=pace.is_stalled)
        self._changed.set()

    def begin(self, station: Station) -> None:
        super().begin(station)
        self._requests = IsrRequests(
            station.rpc, self._leader.book, station.epochs, self._clock.now_ms, self._changed.set
        )

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        now_ms, end_offset = self._machine.now_ms(), image.provenance.end_offset
        records = end_offset - self._end_offset
        may_wait = self._mass_change.came(records, manifest.elapsed_ms, now_ms) or len(self._waiting) > 0
        self._end_offset = end_offset
        self._clock.now_ms()  # somebody is here, and may be told of what others say
        self._waiting.add(image, self._own_end())
        if self._image is EMPTY_IMAGE or not may_wait:
            self._take_first()
        while len(self._waiting) > IMAGES_HELD_MAX:
            self._take_first()
        self._changed.set()

    def report(self) -> ReplicaReport:
        return ReplicaReport(
            NOTICE, False, self._leader.book.outside_count, self._follower.copying_count, self._requests.counters
        )

    @property
    def _begun(self) -> Station:
        assert self.station is not None, "nothing comes before begin"
        return self.station

    def take(self, data: bytes, check: Callable[[int], None] = lambda _: None) -> bytes:
        """A message of another process, and what it is answered. ``check``: refuses one that is no such broker's.

        Raises:
            MalformedMessage: it is none.
        """
        message = decode_message(data)
        for broker_id, _ in message.followers:
            check(broker_id)
        return encode_answer(self._answer(message))

    async def run(self) -> None:
        log.info("replicas.started", notice=NOTICE, lag_max_ms=self._timing.lag_max_ms)
        serves_at = self._begun.serves_at()
        assert serves_at is not None, "followers and leaders speak with each other over HTTP"
        self._follower.address = host_and_port(serves_at.host, serves_at.port)
        for broker_id in self._played:
            self._begun.ready_to_unfence(broker_id)  # there is an image already
        next_expiry_ms = 0.0
        async with OwnTasks() as tasks:
            while True:
                self._changed.clear()
                await self._take_waiting()
                if self._begun.played() != self._played:
                    self._take(self._image, self._own_end())
                now_ms, attended_ms = self._machine.now_ms(), self._clock.now_ms()
                self._follower.set_followers(self._begun.epochs())
                for link, message in self._follower.messages(now_ms):
                    tasks.create_task(self._exchange(link, message), f"the exchange with {link.address}")
                book = self._leader.book
                if attended_ms >= next_expiry_ms:
                    book.expire(attended_ms)
                    next_expiry_ms = attended_ms + book.lag_max_ms / 2
                self._requests.send_due(tasks, self._played)
                waits_ms = (self._follower.next_due_ms(now_ms) - now_ms, book.next_due_after(attended_ms) - attended_ms)
                await self._wait(max(_WAIT_MIN_MS, min(*waits_ms, self._timing.interval_ms)))
                await self._let_mass_changes_pass()

    async def _let_mass_changes_pass(self) -> None:
        if not self._follower.is_behind:
            self._all_said_ms = self._machine.now_ms()
        while wait_ms := self._mass_change.wait_ms(
            self._waiting.count, len(self._waiting), self._all_said_ms, self._machine.now_ms()
        ):
            await self._machine.sleep_ms(max(_WAIT_MIN_MS, min(wait_ms, _LOOK_MS)))

    async def _take_waiting(self) -> None:
        """Take the images that wait now; of those that come meanwhile, which may never end, nothing has been heard."""
        for _ in range(len(self._waiting)):
            if len(self._waiting):
                self._begun.call(self._take_first)  # one that fails is noted, and the next one may be taken
                await asyncio.sleep(0)  # the next one takes some milliseconds, too
            if self._mass_change.is_too_long(self._all_said_ms, self._machine.now_ms()):
                break

    def _take_first(self) -> None:
        first, begun_ms = self._waiting.take_first(), self._machine.now_ms()
        self._take(first.image, first.own_end)
        self._mass_change.took(self._machine.now_ms() - begun_ms, first.size)

    def _own_end(self) -> int:
        return self._model.end(self._machine.wall_ms())

    def _take(self, image: MetadataImage, own_end: int) -> None:
        self._image, self._played = image, self._begun.played()
        self._leader.cluster_id = self._follower.cluster_id = self._begun.cluster_id()
        self._leader.update(image, self._played, self._clock.now_ms())
        addresses = self._addresses.in_image(image, self._played, self._leader.heard_from)
        self._follower.update(image, self._played, addresses, own_end, self._machine.now_ms())

    def _answer(self, message: FollowMessage) -> FollowAnswer:
        known = dict(self._leader.heard_from)
        answer = self._leader.answer(message, self._clock.now_ms(), self._machine.wall_ms())
        if self._leader.heard_from != known:
            self._take(self._image, self._own_end())
        self._changed.set()
        return answer

    async def _exchange(self, link: Link, message: FollowMessage) -> None:
        """Send one message; whatever becomes of it, the next one may leave."""
        had_failed = link.failures > 0
        try:
            if link.address == LOCAL:
                answer = self._answer(message)
            else:
                answer = decode_answer(await self._peers.exchange(link.address, encode_message(message)))
        except QuorateError as error:
            self._follower.failed(link, message, self._machine.now_ms())
            if not had_failed:
                log.warning("replicas.leader_unreachable", address=link.address, reason=str(error))
        else:
            self._follower.answered(link, message, answer, self._machine.now_ms())
            if had_failed and not link.failures:
                log.info("replicas.leader_reached", address=link.address)
        finally:
            self._changed.set()

    def _new_session(self) -> int:
        return int.from_bytes(self._machine.new_uuid()[8:], "big") >> 1
