"""Compares this node's state with the other controllers' again and again, and stops a node whose state is wrong.

Two controllers that have applied the same log have the same digest, or one of them is wrong: a bug, memory, a disk that
lied. Whoever differs from more than half of all controllers is wrong and ends, for what it serves is not the cluster's
state; where no such half agrees, all say so and go on. It takes two comparisons in a row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NoReturn, Protocol

import structlog

from quorate.controller.background.digest_verdict import DigestVerdict, judge_digests
from quorate.controller.engine.counters import Counters
from quorate.controller.http.ports import Node, Peer
from quorate.metadata_log.errors import ApiError, QuorateError

log = structlog.get_logger()

INTERVAL_SECONDS: Final = 10.0
#: Of a core, on average, for all digests of this node.
CORE_SHARE: Final = 0.01
#: Between the two comparisons that convict a node.
_CONFIRM_SECONDS: Final = 1.0
#: A node that knows its state to be wrong leaves the others this long to see it for themselves, and to name it.
_LAST_SECONDS: Final = 3.0
#: The others may be a little behind.
_WAIT_MS: Final = 2_000


class StateDiffers(QuorateError):
    """The states of two nodes at one offset are not the same."""


class Asker(Protocol):
    """The part of a ``ControllerClient`` that the watch needs."""

    async def digest_of(self, url: str, offset: int, **parameters: int | str) -> str:
        """Digest of a node's state at an offset."""


class Alarms(Protocol):
    """The part of ``controller.engine.environment.ProcessFaults`` that the watch needs."""

    def alarm(self, what: str, sentence: str | None) -> None:
        """Something is wrong in the cluster for as long as it is not taken back with None."""

    def fatal(self, what: str, error: Exception) -> None:
        """This process must not go on."""


class ControllerDigestWatch:
    """Owned by the loop thread; ``run`` works until it is cancelled."""

    def __init__(self, node: Node, client: Asker, alarms: Alarms, counters: Counters) -> None:
        self._node = node
        self._client = client
        self._alarms = alarms
        self._counters = counters
        #: Newest offset at which all that answered had the same state.
        self._equal_at = 0

    async def run(self) -> NoReturn:
        """Compare every ``INTERVAL_SECONDS``, and less often where digests take long."""
        digests = self._node.digests
        counted = digests.spent_seconds
        is_doubted = False
        while True:
            try:
                if await self.check(is_confirmed=is_doubted) and not is_doubted:
                    await asyncio.sleep(_CONFIRM_SECONDS)
                    await self.check(is_confirmed=True)
            except QuorateError as error:
                log.warning("digest_watch.not_compared", error=str(error))
            # What answers to the others have taken since the last time is in it: they go by the same rule.
            spent, counted = digests.spent_seconds - counted, digests.spent_seconds
            is_doubted = await self._pause(max(INTERVAL_SECONDS, spent / CORE_SHARE))

    async def _pause(self, seconds: float) -> bool:
        """Whether it was ended by a node that doubts its own state."""
        doubted = self._node.digests.doubted
        doubted.clear()
        try:
            async with asyncio.timeout(seconds):
                await doubted.wait()
        except TimeoutError:
            return False
        return True

    async def check(self, *, is_confirmed: bool = False) -> bool:
        """One comparison at the newest offset; whether states differ. ``is_confirmed``: they did a moment ago, too."""
        offset, own = await self._node.digests.at(None, 0)
        peers = [peer for peer in self._node.peers.values() if peer.node_id != self._node.node_id]
        answers = await asyncio.gather(*(self._ask(peer, offset) for peer in peers))
        others = {peer.node_id: answer for peer, answer in zip(peers, answers, strict=True) if answer is not None}
        if not others:
            return False
        self._counters.digest_comparisons += 1
        verdict = judge_digests({self._node.node_id: own, **others}, len(self._node.peers))
        if not verdict.wrong and not verdict.is_undecided:
            self._equal_at = max(self._equal_at, offset)
            self._alarms.alarm("digest watch", None)
            return False
        self._counters.digest_differences += 1
        if is_confirmed:
            await self._act(verdict, offset, {self._node.node_id: own, **others})
        return True

    async def _act(self, verdict: DigestVerdict, offset: int, digests: Mapping[int, str]) -> None:
        own_id = self._node.node_id
        suspects = verdict.wrong - {own_id} or {id_ for id_ in digests if digests[id_] != digests[own_id]}
        peer_id = min(verdict.agreeing) if own_id in verdict.wrong else min(suspects)
        first = await self._first_difference(self._node.peers[peer_id], offset)
        if verdict.is_undecided:
            sentence = f"the states of controllers {_listed(digests)} differ at {first}, and no majority agrees"
        else:
            wrong, agreeing = _listed(verdict.wrong), _listed(verdict.agreeing)
            sentence = f"the state of controller {wrong} differs from that of controllers {agreeing} at {first}"
        log.error("state.differs", digests=dict(digests), offset=offset, first=first, wrong=sorted(verdict.wrong))
        if own_id in verdict.wrong:
            others = [peer for id_, peer in self._node.peers.items() if id_ != own_id]
            await asyncio.gather(*(self._ask(peer, offset, doubt="true") for peer in others))
            await asyncio.sleep(_LAST_SECONDS)
            self._alarms.fatal("digest watch", StateDiffers(sentence))
        else:
            self._alarms.alarm("digest watch", sentence)

    async def _first_difference(self, peer: Peer, offset: int) -> str:
        """The first difference between the two nodes, as far back as states are kept."""
        equal, differs = self._equal_at, offset
        kept = [at for at in self._node.digests.kept_offsets() if equal < at < offset]
        while kept:
            middle = len(kept) // 2
            at = kept[middle]
            try:
                own = (await self._node.digests.at(at, 0))[1]
            except ApiError:
                break
            other = await self._ask(peer, at)
            if other is None:
                break
            if own == other:
                equal, kept = at, kept[middle + 1 :]
            else:
                differs, kept = at, kept[:middle]
        return f"offset {differs}" + (f" (the same at offset {equal})" if equal else "")

    async def _ask(self, peer: Peer, offset: int, **parameters: str) -> str | None:
        """None where it cannot say."""
        try:
            return await self._client.digest_of(peer.url, offset, wait_ms=_WAIT_MS, **parameters)
        except QuorateError:
            return None


def _listed(ids: Mapping[int, str] | frozenset[int]) -> str:
    return ", ".join(map(str, sorted(ids)))
