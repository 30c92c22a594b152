"""Giving up: whoever makes an answer looks, again and again, whether somebody waits for it still."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: Raises where nobody waits any more.
Look = Callable[[], None]


def nobody_gives_up() -> None:
    """Look on behalf of one who waits to the end."""


def looked_at(items: Iterable[T], check: Look) -> Iterator[T]:
    """Give each, and look before it whether to go on.

    Raises:
        What ``check`` raises.
    """
    for item in items:
        check()
        yield item
