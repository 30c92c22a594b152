"""The story of a run: what happened when, and what each process said of it, for whoever looks into a failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from quorate.scripts.simulation.system.loop import VirtualLoop


class RunStory:
    """Lines with their virtual time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._now = 0.0

    def add(self, now: float, what: str) -> None:
        """Something happened."""
        self._now = now
        self.lines.append(f"{now:9.4f}  {what}")

    def logged(self, logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """A processor for what production code logs."""
        loop = asyncio._get_running_loop()
        who = loop.who if isinstance(loop, VirtualLoop) else ""
        now = loop.time() - VirtualLoop.CLOCK_BEGIN if isinstance(loop, VirtualLoop) else self._now
        name = event.pop("event", "")
        said = " ".join(f"{key}={value}" for key, value in event.items() if key != "exception")
        self.add(now, f"{who}: {name} {said}".rstrip())
        raise structlog.DropEvent


@contextmanager
def listening(story: RunStory | None) -> Iterator[None]:
    """Let production's log lines go into the story; nowhere where there is none."""
    before = structlog.get_config()
    if story is None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    else:
        wrapper = structlog.make_filtering_bound_logger(logging.INFO)
        structlog.configure(processors=[story.logged], wrapper_class=wrapper)
    try:
        yield
    finally:
        structlog.configure(**before)
