"""Words for a person who waits, so that nobody takes a command for stuck that looks for a controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.line import telling


@contextmanager
def telling_who_is_waited_for(
    urls: Sequence[str], refusal: Callable[[], Exception | None] = lambda: None
) -> Iterator[None]:
    """While the block lasts, say for how long nobody has answered.

    ``refusal``: of a controller that has too much to do, while the time that it named is waited for; None: none is.
    """
    whom = ", ".join(urls)

    def tell(seconds: float) -> str:
        why = refusal()
        if why is None:
            return f"no answer yet from {whom} after {duration(seconds)}; Ctrl-C ends the waiting"
        return f"not done after {duration(seconds)}, and asked again when {whom} said; Ctrl-C ends the waiting: {why}"

    with telling(tell):
        yield
