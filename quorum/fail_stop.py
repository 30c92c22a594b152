"""A node goes on as long as everything went as it should; the first thing that did not ends it.

What runs for the node runs through here: the consensus core, the disk's reports, timers, and whatever the program
behind the quorum does when it is told something. An exception in any of it may have left half a change, so the process
ends, and nothing of the node runs meanwhile. Event loops only log what a callback raises: none may be left to them.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.errors import ProtocolError


class FailStop:
    """Whether the node still acts. ``fatal`` must end the process."""

    def __init__(self, fatal: Callable[[BaseException], None]) -> None:
        self._fatal = fatal
        self.is_stopped = False

    def run(self, action: Callable[..., None], *arguments: object) -> None:
        """Run ``action`` unless the node has ended; what it raises ends the node."""
        if self.is_stopped:
            return
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody knows what it left behind
            self.fail(error)

    def take(self, action: Callable[..., None], *arguments: object) -> None:
        """The same with a peer's message.

        Raises:
            ProtocolError: the message is wrong, and has changed nothing.
        """
        if self.is_stopped:
            return
        try:
            action(*arguments)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001  # as above
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """The node must not do anything any more."""
        if not self.is_stopped:
            self.is_stopped = True
            self._fatal(error)
