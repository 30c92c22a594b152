"""A cluster as its controllers show it over HTTP, whoever runs its processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.members import Members
from quorate.scripts.cluster.plan import ClusterError

T = TypeVar("T")

_POLL_S: Final = 0.02
#: A write that looks for an active controller gives up where no majority listens: that is not to be waited out.
_ABSENT_MS: Final = 5_000.0


class WatchedCluster:
    """A running cluster that can be asked and waited for."""

    def __init__(
        self,
        members: Members,
        shared_secret: bytes | None = None,
        tls: TlsContexts | None = None,
        *,
        insecure: bool = False,
    ) -> None:
        """``shared_secret``: it, or a token, with which its controllers are asked; None: neither is wanted.
        ``tls``: with which its processes are asked; None: they speak none. ``insecure``: as for ``ControllerClient``.
        """
        self.members = members
        #: Whether it was made from another one's metadata, in which brokers are active before anybody plays them.
        self.is_import = False
        self.tls = tls
        self.shared_secret = shared_secret
        #: What was seen last; None before anything was.
        self.seen: StatusReply | None = None
        self.client = ControllerClient(
            members.controller_urls, shared_secret=shared_secret, tls=tls, absent_ms=_ABSENT_MS, insecure=insecure
        )

    @property
    def awaited(self) -> Members:
        """Those of its members that a wait for all of them is for."""
        return self.members

    def check(self) -> None:
        """Raise what explains why a wait was in vain; of processes that others run nothing is known."""

    def require_there(self) -> None:
        """Raise what leaves nothing to wait for: whoever runs it has ended, or too many of its processes have."""

    async def status(self) -> StatusReply:
        """The cluster as its active controller sees it."""
        self.seen = await self.client.status()
        return self.seen

    async def wait_for_controllers(self, deadline_s: float) -> StatusReply:
        """Until there is an active controller and all voters follow it."""

        async def look() -> StatusReply | None:
            status = await self.status()
            followed = [v for v in status.quorum.voters if v.role in ("active", "standby")]
            is_complete = {v.node_id for v in followed} >= self.awaited.controllers.keys()
            return status if status.quorum.active_id is not None and is_complete else None

        return await self.until(look, "all controllers follow one active controller", deadline_s)

    async def wait_for_brokers(self, deadline_s: float) -> StatusReply:
        """Until every broker that is played is unfenced, and has spoken where it may have been unfenced before that."""

        async def look() -> StatusReply | None:
            status = await self.status()
            active = [broker for broker in status.brokers if broker.state == "active"]
            there = {one.id for one in active if one.last_heartbeat_ms is not None or not self.is_import}
            return status if self.awaited.broker_ids <= there else None

        return await self.until(look, f"brokers {sorted(self.awaited.broker_ids)} are active", deadline_s)

    async def until(self, look: Callable[[], Awaitable[T | None]], what: str, deadline_s: float) -> T:
        """Look until there is something to see. An unreachable controller is no failure: it may be on its way.

        Raises:
            ClusterError: not within the deadline, or never. ProcessFailed: nor then, or never, and a process ended by
                itself.
        """
        end = time.monotonic() + deadline_s
        last: object = None
        while time.monotonic() < end:
            self.require_there()
            try:
                seen = await look()
                if seen is not None:
                    return seen
            except ApiError as error:
                last = error
            await asyncio.sleep(_POLL_S)
        self.check()
        raise ClusterError(f"not within {deadline_s:.0f} s: {what}" + (f" ({last})" if last else ""))

    async def topic_names(self) -> set[str]:
        """All topics there are, what was acknowledged a moment ago among them."""
        names: set[str] = set()
        after: str | None = ""
        while after is not None:
            page = await self.client.list_topics(after=after, consistency="linearizable")
            names |= {topic.name for topic in page.topics}
            after = page.next_after
        return names
