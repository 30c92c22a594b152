"""Mass changes of the metadata come before what followers and leaders have to say of them to each other.

While one arrives, the image of a leader is not that of its follower: what is said is refused, or overtaken, and said
again. Replaying it is what everybody waits for: nothing is said meanwhile, and leaders and followers are told of the
images when they may speak again.
"""

from __future__ import annotations

from typing import Final

#: Records of one update from which on more of them are expected.
MASS_RECORDS: Final = 4_096
#: How long they are expected after the last of them: between two answers of a controller nobody knows of any.
EXPECTED_MS: Final = 250.0
#: So long nothing is said at most, and no longer than a quarter of what followers may be silent for beyond three
#: messages of theirs: what one says counts when the next has confirmed it, and one is late where its process is busy.
SILENCE_MS_MAX: Final = 10_000.0
_SILENCE_SHARE: Final = 1 / 4
_MESSAGES: Final = 3
#: However much more pieces cost than was known of them, something is said after so many times the longest silence.
_TOO_LONG: Final = 1.5
#: Of what is known of costs, the share that counts beside a new one that is less.
_KEPT: Final = 0.8


class MassChange:
    """Whether a mass change arrives, and for how long what it brings may wait. No clock: times are monotonic ms.

    To take what waits takes time, too, in which as much comes again: nobody is silent for longer than may be with that.
    """

    def __init__(self, lag_max_ms: float, interval_ms: float) -> None:
        """``lag_max_ms``: how long a follower may go without being heard. ``interval_ms``: between two messages that
        have nothing new to say.
        """
        self._silence_ms_max = min(SILENCE_MS_MAX, (lag_max_ms - _MESSAGES * interval_ms) * _SILENCE_SHARE)
        self._expected_until_ms = -float("inf")
        #: The time that the replay of an update takes, to take it then, and to take a piece of them as one.
        self._replay_ms = self._taking_ms = self._piece_ms = 0.0

    def came(self, records: int, replay_ms: float, now_ms: float) -> bool:
        """Note an update of so many records, which were replayed in that time. Returns whether it may wait to be taken.

        The first one of a mass change may not: by it is known what the others will take.
        """
        may_wait = now_ms < self._expected_until_ms
        if records >= MASS_RECORDS:
            self._replay_ms = _rather_more(self._replay_ms, replay_ms)
            self._expected_until_ms = now_ms + EXPECTED_MS
        return may_wait

    def took(self, elapsed_ms: float, updates: int) -> None:
        """Note what it took to take so many updates as one."""
        self._taking_ms = _rather_more(self._taking_ms, elapsed_ms / updates)
        self._piece_ms = _rather_more(self._piece_ms, elapsed_ms)

    def wait_ms(self, waiting: int, takings: int, all_said_ms: float, now_ms: float) -> float:
        """The time to wait before saying anything, or looking again whether to; 0: now.

        Args:
            waiting: updates that are to be taken before.
            takings: in how many pieces they are.
            all_said_ms: when nothing was left to be said last. However much there is, all of it comes between two
                silences: what is left for after the next one might come too late.
        """
        # A piece takes some time however few updates are in it, and behind each another update is replayed.
        taking_all_ms = max(waiting * self._taking_ms, takings * self._piece_ms) + takings * self._replay_ms
        until_ms = min(self._expected_until_ms, all_said_ms + self._silence_ms_max - taking_all_ms)
        return max(0.0, until_ms - now_ms)

    def is_too_long(self, all_said_ms: float, now_ms: float) -> bool:
        """Whether something must be said before more is taken: what waits costs far more than was known of it.

        ``all_said_ms``: as of ``wait_ms``.
        """
        return now_ms >= all_said_ms + _TOO_LONG * self._silence_ms_max


def _rather_more(known: float, new: float) -> float:
    return max(new, _KEPT * known + (1 - _KEPT) * new)
