"""The followers' side of the exchange: how far each replica here is, by this process's own clock and rate, in messages.

Rules of the file: no clock, no I/O; times are monotonic milliseconds. There is one *link* to each process that leads
what is followed here (one of them may be this process itself), and one session on it (``messages``). All level
replicas of a link are one position: they copy at one rate what is written at one rate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.broker.replicas.followed_pages import NEVER, FollowedPages, Leaders, LinkColumns
from quorate.broker.replicas.messages import UNSAID, FollowAnswer, FollowedRows, FollowMessage
from quorate.broker.replicas.stand_in import Pace
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

#: Partitions that one message names: a leader takes some 3 ms to note them, and for as many as it may name 15.
ROWS_PER_MESSAGE: Final = 12_288
#: First wait before what was refused is said again: the leader may be a moment behind. Doubled up to the maximum.
_REFUSED_FIRST_MS: Final = 20.0
_REFUSED_MAX_MS: Final = 500.0
#: First wait before another session is begun; doubled up to the setting.
_RETRY_FIRST_MS: Final = 50.0
_DOUBLINGS_MAX: Final = 30
#: Of a process that did not answer so often in a row nobody waits for news.
_FAILURES_AWAITED: Final = 3

#: Where a process can be spoken to; what it is, is the shell's business.
Address = str


@dataclass(slots=True, eq=False)
class Link:
    """The session with one process that leads."""

    address: Address
    #: Where it stands among the links.
    index: int
    session: int = 0
    #: Of the next message.
    number: int = 0
    #: Time, and where the logs begin and end there, by the last answer.
    replied_ms: int = UNSAID
    log_start: int = 0
    log_end: int = 0
    #: What all level replicas hold; UNSAID: there are none, or it is not known yet.
    position: float = UNSAID
    #: What the last message said.
    told_followers: tuple[tuple[int, int], ...] = ()
    has_told_position: bool = False
    #: The last message was full: there may be more to say.
    has_more: bool = False
    is_in_flight: bool = False
    #: Nothing is sent before; and when the last message left.
    not_before_ms: float = -np.inf
    sent_ms: float = -np.inf
    #: Sessions that ended, and answers that refused something, in a row.
    failures: int = 0
    refusals: int = 0
    #: Rows followed over it.
    row_count: int = 0

    @property
    def must_confirm(self) -> bool:
        """Whether nobody has heard yet how far those are who were said to be level."""
        return not self.has_told_position and self.position != UNSAID and self.replied_ms != UNSAID

    @property
    def is_behind(self) -> bool:
        """Whether something is left that the next messages should say, to a process that may answer them."""
        if not self.row_count or self.failures > _FAILURES_AWAITED:
            return False
        return self.replied_ms == UNSAID or self.must_confirm or self.has_more or self.refusals > 0


class FollowerCore:
    """See the module.

    Args:
        interval_ms: time between two messages that have nothing new to say.
        retry_max_ms: longest wait between two attempts to begin a session.
        new_session: gives numbers for sessions.
    """

    def __init__(
        self, pace: Pace, interval_ms: float, retry_max_ms: float, new_session: Callable[[], int], now_ms: float
    ) -> None:
        self.pace = pace
        self.links: list[Link] = []
        #: "" until it is known: nothing is said before.
        self.cluster_id = ""
        #: host:port where this process listens; "" until it is known.
        self.address = ""
        self._interval_ms = interval_ms
        self._retry_max_ms = retry_max_ms
        self._new_session = new_session
        self._advanced_ms = now_ms
        self._image = EMPTY_IMAGE
        #: Brokers that may speak, with their epochs, ascending by id.
        self._followers: dict[int, int] = {}
        #: Of the process of each broker that can be followed.
        self._addresses: dict[int, Address] = {}
        self._pages = FollowedPages()

    @property
    def copying_count(self) -> int:
        """Replicas here that do not hold what their leader has."""
        return self._pages.copying_count

    @property
    def is_behind(self) -> bool:
        """Whether leaders have not heard yet what they were, or should have been, told in the last messages."""
        return any(link.is_behind for link in self.links)

    # --- what happened -------------------------------------------------------------------------------

    def update(
        self,
        image: MetadataImage,
        hosted: Collection[int],
        addresses: Mapping[int, Address],
        own_end: int,
        now_ms: float,
    ) -> None:
        """Take a new image.

        Args:
            addresses: of the process of each broker that can be followed.
            own_end: where the logs that are led here end now.
        """
        self._advance(now_ms)
        self._image = image
        is_recast = self._readdress(addresses)
        changes = self._pages.update(image, hosted, self._leaders(), self._columns(), own_end, is_recast=is_recast)
        for index in changes.dropped_links:
            # A session speaks for all it ever named: it begins anew without what is followed no more.
            self._restart(self.links[index])
        if changes.is_any:
            self._count_rows()

    def set_followers(self, epochs: Mapping[int, int]) -> None:
        """The brokers that hold a registration, with its epoch; others say nothing. What changed is said anew."""
        brokers = self._image.cluster.brokers
        followers = {b: epoch for b, epoch in sorted(epochs.items()) if b in brokers and brokers[b].epoch == epoch}
        changed = {broker for broker, _ in followers.items() ^ self._followers.items()}
        self._followers = followers
        if changed:
            self._pages.say_again(changed, None, self._columns())

    def set_pace(self, pace: Pace, now_ms: float) -> None:
        """Copy at another rate from now on."""
        self._advance(now_ms)
        self.pace = pace

    # --- what to say ---------------------------------------------------------------------------------

    def messages(self, now_ms: float) -> Iterator[tuple[Link, FollowMessage]]:
        """The messages to be sent now, at most one a link. Each is answered by ``answered`` or ``failed``."""
        if self._is_silent:
            return
        self._advance(now_ms)
        followers = tuple(self._followers.items())
        for link in self.links:
            if link.is_in_flight or not link.row_count or now_ms < link.not_before_ms:
                continue
            rows = self._pages.take_unsaid(link.index, self._followers, ROWS_PER_MESSAGE)
            link.has_more = len(rows) == ROWS_PER_MESSAGE
            is_news = len(rows) > 0 or followers != link.told_followers or link.must_confirm
            if is_news or now_ms >= link.sent_ms + self._interval_ms:
                yield link, self._message(link, followers, rows, now_ms)

    def answered(self, link: Link, message: FollowMessage, answer: FollowAnswer, now_ms: float) -> None:
        """An answer came."""
        if answer.error is not ErrorCode.NONE:
            self.failed(link, message, now_ms)
            return
        if message.session != link.session:
            return  # another one has begun since
        self._advance(now_ms)
        link.is_in_flight = False
        link.failures = 0
        link.replied_ms, link.log_start, link.log_end = answer.time_ms, answer.log_start, answer.log_end
        if link.position == UNSAID and message.rows.is_level.any():
            link.position = answer.log_end
        # Bytes that the leader does not have are cut, as from a log.
        link.position = min(link.position, answer.log_end)
        self._take_refusals(link, message, answer, now_ms)
        self._advance(now_ms)

    def failed(self, link: Link, message: FollowMessage, now_ms: float) -> None:
        """No answer came, or one that ends the session: begin another one after a while."""
        if message.session != link.session:
            return
        wait_ms = min(_RETRY_FIRST_MS * 2.0**link.failures, self._retry_max_ms)
        link.failures = min(link.failures + 1, _DOUBLINGS_MAX)
        link.not_before_ms = now_ms + wait_ms
        self._restart(link)

    def next_due_ms(self, now_ms: float) -> float:
        """The time at which ``messages`` is to be asked again if nothing happens before; NEVER: an event must come
        first.
        """
        if self._is_silent:
            return NEVER
        # What is due already waits for something else: a registration, or an answer.
        due = [
            link.not_before_ms if link.not_before_ms > now_ms else link.sent_ms + self._interval_ms
            for link in self.links
            if link.row_count and not link.is_in_flight
        ]
        due.append(now_ms + self._pages.needed_ms(self.pace, self._columns()))
        return max(min(due), now_ms)

    @property
    def _is_silent(self) -> bool:
        return self.pace.is_stalled or not self._followers or not self.cluster_id

    # --- links ---------------------------------------------------------------------------------------

    def _readdress(self, addresses: Mapping[int, Address]) -> bool:
        """Take where everybody is. Returns whether anything is new."""
        if dict(addresses) == self._addresses:
            return False
        self._addresses = dict(addresses)
        known = {link.address for link in self.links}
        for address in sorted(set(addresses.values()) - known):
            link = Link(address, len(self.links), session=self._new_session())
            self.links.append(link)
        return True

    def _leaders(self) -> Leaders:
        index = {link.address: link.index for link in self.links}
        brokers = sorted(self._addresses)
        links = [index[self._addresses[broker]] for broker in brokers]
        return Leaders(np.array(brokers, np.int32), np.array(links, np.int32))

    def _restart(self, link: Link) -> None:
        """Begin a session in which everything is said again."""
        link.session, link.number = self._new_session(), 0
        link.replied_ms, link.told_followers, link.has_told_position = UNSAID, (), False
        link.is_in_flight = False
        self._pages.say_again(None, link.index, self._columns())

    def _count_rows(self) -> None:
        for link, count in zip(self.links, self._pages.row_counts(len(self.links)), strict=True):
            had, link.row_count = link.row_count, count
            if had and not count:
                link.position = UNSAID
                self._restart(link)

    def _columns(self) -> LinkColumns:
        positions = [np.inf if link.position == UNSAID else link.position for link in self.links]
        return LinkColumns(
            np.array(positions, np.float64),
            np.array([link.replied_ms != UNSAID for link in self.links], np.bool_),
            np.array([link.log_start for link in self.links], np.float64),
            np.array([link.log_end for link in self.links], np.float64),
        )

    def _advance(self, now_ms: float) -> None:
        """Let everything be copied until now."""
        elapsed_ms, self._advanced_ms = now_ms - self._advanced_ms, now_ms
        if self.pace.is_stalled:
            return
        for link in self.links:
            if link.position != UNSAID and link.replied_ms != UNSAID:
                link.position = min(link.position + self.pace.copied(elapsed_ms), link.log_end)
        self._pages.copy(self.pace, elapsed_ms, self._columns())

    # --- messages ------------------------------------------------------------------------------------

    def _message(
        self, link: Link, followers: tuple[tuple[int, int], ...], rows: FollowedRows, now_ms: float
    ) -> FollowMessage:
        if link.replied_ms != UNSAID and link.position == UNSAID and rows.is_level.any():
            link.position = link.log_end
        position = UNSAID if link.replied_ms == UNSAID else int(link.position)
        message = FollowMessage(
            self.cluster_id, self.address, link.session, link.number, followers, link.replied_ms, position, rows
        )
        link.number += 1
        link.told_followers = followers
        link.has_told_position = position != UNSAID
        link.is_in_flight = True
        link.sent_ms = now_ms
        return message

    def _take_refusals(self, link: Link, message: FollowMessage, answer: FollowAnswer, now_ms: float) -> None:
        """Have the rows that were not noted said again, after a wait: the leader may be a moment behind, or ahead."""
        at = answer.refused_rows[(answer.refused_rows >= 0) & (answer.refused_rows < len(message.rows))]
        if not len(at) and not answer.refused_followers:
            link.refusals = 0
            return
        link.not_before_ms = now_ms + min(_REFUSED_FIRST_MS * 2.0**link.refusals, _REFUSED_MAX_MS)
        link.refusals = min(link.refusals + 1, _DOUBLINGS_MAX)
        if answer.refused_followers:
            self._pages.say_again(answer.refused_followers, link.index, self._columns())
        self._pages.unsay(message.rows, at.astype(np.int64))
