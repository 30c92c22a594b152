"""Counts the requests and connections of a server: how long answers took, and which limits refused what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from types import MappingProxyType
from typing import Final

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.engine.counters import Histogram
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded

#: Upper ends in seconds. Few, for there is a histogram for each route: at once, a commit, a slow disk, a deadline.
BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)

#: Status -> the limit by which a request is refused with it.
_LIMITS: Final[Mapping[int, str]] = MappingProxyType(
    {408: "head_timeout_ms", 413: "body_bytes_max", 431: "head_bytes_max"}
)
#: Limits of every server, by the names that refusals are counted by.
SERVER_LIMITS: Final = ("body_bytes_max", "connections_max", "head_bytes_max", "head_timeout_ms")
#: Limits of controllers.
CONTROLLER_LIMITS: Final = (
    *SERVER_LIMITS,
    "answers",
    "bodies_bytes_max",
    "checkpoints",
    "connection_creation_rate",
    "connections_per_address_max",
    "connections_per_second_max",
    "controller_mutation_rate",
    "digests",
    "event_queue",
    "event_streams",
    "failed_logins",
    "feed_fetches",
    "forwarded_requests",
    "logins",
    "uncommitted_bytes",
    "unconfirmed_answers",
    "unread_answers",
)
#: The only limit of others than ``Overloaded``: a client's quota.
_QUOTA: Final = "controller_mutation_rate"


class HttpCounts:
    """Of one server. Owned by the loop thread."""

    def __init__(self, limits: Iterable[str] = ()) -> None:
        """``limits``: those that are known, counted from 0 on: who watches a counter rise sees its first event, too."""
        #: Route, with its method -> from a request's head until its answer was made.
        self.seconds: dict[str, Histogram] = {}
        #: Limit -> requests and connections that it refused.
        self.refused: Counter[str] = Counter(dict.fromkeys(limits, 0))
        #: The places that are taken; that of the server, once it listens.
        self.connections: Sized = ()

    def note_answer(self, route: str, seconds: float) -> None:
        """A request was answered. ``route``: of the table, never a path: there are few of them."""
        durations = self.seconds.get(route)
        if durations is None:
            durations = self.seconds[route] = Histogram(BUCKETS)
        durations.note(seconds)

    def note_failure(self, error: Exception) -> None:
        """A request failed, or a connection was refused: counted where a limit was the reason."""
        limit = limit_of(error)
        if limit is not None:
            self.refused[limit] += 1

    def copy(self) -> HttpCounts:
        """As of now."""
        copied = HttpCounts()
        copied.seconds = {route: durations.copy() for route, durations in self.seconds.items()}
        copied.refused = self.refused.copy()
        copied.connections = range(len(self.connections))
        return copied


def limit_of(error: Exception) -> str | None:
    """The name of the limit that was the reason of a refusal; None: none was."""
    if isinstance(error, Overloaded):
        return error.limit
    if isinstance(error, HttpRefusal):
        return _LIMITS.get(error.status)
    is_quota = isinstance(error, ApiError) and error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return _QUOTA if is_quota else None
