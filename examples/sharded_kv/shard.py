"""One replica of one shard: it leads, or follows whoever leads, and its log says the same as theirs.

Rules: an entry is *committed* when all have it who may be elected (``ServiceReplicas.maximal_isr``). A leader answers
only while its session is valid, and begins only when nobody answers for an older epoch any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from examples.sharded_kv.store import Entry, Store
from quorate.worker import LocalReplica, NotNoted, ServiceReplicas

#: Seconds: how long a follower may be silent before it leaves the ISR, and how long it waits for news.
LAG_S, POLL_S, RETRY_S = 1.5, 0.3, 0.1
#: Entries of one answer to a follower.
ENTRIES_MAX = 200


class Refused(Exception):
    """This worker does not answer for the shard now: ask again, perhaps another one."""


class Peers(Protocol):
    """The other workers."""

    async def ask(self, broker_id: int, path: str, question: dict[str, Any]) -> dict[str, Any]:
        """Ask one of them. Raises ``Refused`` where it refuses, or there is no answer in time."""

    def unfenced(self) -> set[int]:
        """Those that the newest image shows as alive, this one excluded."""


class Shard:
    """See the module. All of it runs on one event loop."""

    def __init__(self, name: str, me: int, replicas: ServiceReplicas, store: Store, peers: Peers) -> None:
        self.name = name
        self._me = me
        self._replicas = replicas
        self._store = store
        self._peers = peers
        self._replica: LocalReplica | None = None
        self._task: asyncio.Task[None] | None = None
        #: Leader epoch that this replica leads or follows in.
        self.epoch = -1
        self.high_watermark = store.high_watermark(name)
        #: Answers are given for this epoch and newer ones only: a successor has asked for that.
        self._barred_below = 0
        # While it leads. Where the log ended when it began; whether nobody else answers; what followers have, and when
        # each was heard last.
        self._began_at = 0
        self._is_alone = False
        self._ends: dict[int, int] = {}
        self._heard: dict[int, float] = {}
        self._news = asyncio.Event()

    # --- what Quorate says ---------------------------------------------------------------------------

    def lead(self, replica: LocalReplica) -> None:
        """Lead, or go on to, with this state."""
        self._replica = replica
        if self.epoch != replica.state.leader_epoch or not self._leads:
            self._begin(replica.state.leader_epoch, self._lead)
            self._began_at, self._is_alone = self._store.end(self.name), False
            self._ends, self._heard = {}, {}
        self._advance()

    def follow(self, replica: LocalReplica) -> None:
        """Follow whoever leads; nobody may."""
        before, self._replica = self._replica, replica
        leader = replica.state.leader
        is_same = before is not None and before.state.leader == leader and self.epoch == replica.state.leader_epoch
        if not is_same:
            self._begin(replica.state.leader_epoch, self._follow if leader >= 0 else None)

    def drop(self) -> None:
        """There is no replica here any more; its data stay until they may go."""
        self._begin(self.epoch, None)
        self._replica = None

    def bar(self, epoch: int) -> None:
        """Somebody leads in this epoch: no answer for an older one from now on."""
        self._barred_below = max(self._barred_below, epoch)

    async def end(self) -> None:
        """Stop."""
        self._begin(self.epoch, None)

    def _begin(self, epoch: int, role: Callable[[], Any] | None) -> None:
        self.epoch = epoch
        if self._task is not None:
            self._task.cancel()
        self._task = None if role is None else asyncio.get_running_loop().create_task(role())
        self._tell()

    # --- clients -------------------------------------------------------------------------------------

    async def put(self, key: str, value: str) -> None:
        """Write. Raises ``Refused``: nobody knows whether it was, unless nothing was begun."""
        self._check_serves()
        entry = Entry(self._store.end(self.name), self.epoch, key, value)
        self._store.append(self.name, [entry])
        self._advance()
        while self.high_watermark <= entry.at:
            await self._next_news()
            if self.epoch != entry.epoch:
                raise Refused(f"{self.name} has another leader before the write was committed")

    def get(self, key: str) -> str | None:
        """Read what is committed. Raises ``Refused``."""
        self._check_serves()
        return self._store.get(self.name, key, self.high_watermark)

    @property
    def _leads(self) -> bool:
        return self._replica is not None and self._replica.state.leader == self._me

    def _check_serves(self) -> None:
        if not self._leads:
            raise Refused(f"broker {self._me} does not lead {self.name}")
        if not self._replicas.has_session(self._me):
            raise Refused(f"the session of broker {self._me} may be over: another one may lead {self.name}")
        if self.epoch < self._barred_below or not self._is_alone or self.high_watermark < self._began_at:
            raise Refused(f"broker {self._me} does not lead {self.name} yet, or no more")

    # --- leading -------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Let all others say that they answer for no older epoch, or be fenced; then look after the followers."""
        asked: set[int] = set()
        while waiting := self._peers.unfenced() - asked:
            for other in sorted(waiting):
                with suppress(Refused):
                    await self._peers.ask(other, "bar", {"shard": self.name, "epoch": self.epoch})
                    asked.add(other)
            if self._peers.unfenced() - asked:
                await asyncio.sleep(RETRY_S)
        self._is_alone = True
        begun = time.monotonic()
        while True:
            self._advance()
            for broker_id in self._members() - {self._me}:
                if time.monotonic() - self._heard.get(broker_id, begun) > LAG_S:
                    self._say(self._replicas.fell_behind, broker_id)
            await asyncio.sleep(POLL_S)

    async def fetch(self, broker_id: int, broker_epoch: int, epoch: int, end: int, last_epoch: int) -> dict[str, Any]:
        """A follower has everything before ``end``, the last of it from ``last_epoch``. What comes next."""
        self._check_leads(epoch)
        own_end = self._store.end(self.name)
        if end > own_end or self._store.epoch_before(self.name, end) != last_epoch:
            return {"truncate": min(end - 1, self._store.end_of_epoch(self.name, last_epoch))}
        self._heard[broker_id], self._ends[broker_id] = time.monotonic(), end
        assert self._replica is not None
        if broker_id not in self._replica.state.isr and end >= max(self.high_watermark, self._began_at):
            self._say(self._replicas.caught_up, broker_id, broker_epoch)
        self._advance()
        known = self.high_watermark
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                while self._store.end(self.name) <= end and self.high_watermark == known and self.epoch == epoch:
                    await self._next_news()
        self._check_leads(epoch)
        return {"entries": self._store.read(self.name, end, ENTRIES_MAX), "high_watermark": self.high_watermark}

    def _check_leads(self, epoch: int) -> None:
        if not self._leads or epoch != self.epoch:
            raise Refused(f"broker {self._me} does not lead {self.name} in epoch {epoch}")

    def _members(self) -> frozenset[int]:
        assert self._replica is not None
        return self._replicas.maximal_isr(self._replica.topic_id, self._replica.partition_id)

    def _advance(self) -> None:
        """What all have who may be elected is committed."""
        if not self._leads:
            return
        ends = [self._ends.get(broker_id, -1) for broker_id in self._members() - {self._me}]
        self._note_committed(min([self._store.end(self.name), *ends]))
        self._tell()

    def _say(self, what: Callable[..., None], broker_id: int, *more: int) -> None:
        assert self._replica is not None
        with suppress(NotNoted):  # one of us has an older image: it will be said again
            what(self._replica.topic_id, self._replica.partition_id, self.epoch, broker_id, *more)

    # --- following -----------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            broker_epoch, end = self._replicas.broker_epoch(self._me), self._store.end(self.name)
            if broker_epoch is None:
                await asyncio.sleep(RETRY_S)
                continue
            assert self._replica is not None
            question = {
                "shard": self.name,
                "broker_id": self._me,
                "broker_epoch": broker_epoch,
                "epoch": self.epoch,
                "end": end,
                "last_epoch": self._store.epoch_before(self.name, end),
            }
            try:
                answer = await self._peers.ask(self._replica.state.leader, "fetch", question)
            except Refused:
                await asyncio.sleep(RETRY_S)
                continue
            if "truncate" in answer:
                self._store.truncate(self.name, answer["truncate"])
            else:
                self._store.append(self.name, [Entry(*row) for row in answer["entries"]])
                self._note_committed(min(answer["high_watermark"], self._store.end(self.name)))

    def _note_committed(self, end: int) -> None:
        if end > self.high_watermark:
            self.high_watermark = end
            self._store.note_high_watermark(self.name, end)

    # --- news ----------------------------------------------------------------------------------------

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _next_news(self) -> None:
        await self._news.wait()
