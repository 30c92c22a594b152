"""A thread goes on when nobody waits for it any more: whoever asks next waits for its end, and takes no other one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from quorate.controller.api.audit_models import AuditParameters
from quorate.controller.feed.feed import FeedSource
from quorate.controller.logs.audit_reading import AuditLines, AuditReading
from quorate.controller.reads import absences, past, replica_additions
from quorate.controller.reads.broker_absences import LogAbsences
from quorate.controller.reads.past import Checkpoints, PastImages
from quorate.controller.reads.replica_additions import LogAdditions
from quorate.metadata_log.audit.audit_pages import AuditPage
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.image.image import EMPTY_IMAGE
from tests.unit.controller.reads.test_broker_absences import WRITTEN, Log
from tests.waiting import eventually


class Work:
    """Stands for what is done on a thread, and does not end before it may."""

    def __init__(self, result: Any) -> None:
        self._result = result
        self._lock = threading.Lock()
        self.begun = self.under_way = self.most_at_once = 0
        self.may_end = threading.Event()

    def __call__(self, *_: object) -> Any:
        with self._lock:
            self.begun += 1
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
        self.may_end.wait(10)
        with self._lock:
            self.under_way -= 1
        return self._result


Asked = Callable[[], Awaitable[object]]


def of_absences(work: Work, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr(absences.Absences, "take_batches", work)
    known = LogAbsences(cast(FeedSource, Log(WRITTEN)))
    return lambda: known.at(6)


def of_additions(work: Work, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.setattr(replica_additions, "adding_changes", lambda *_: ([], work()))
    known = LogAdditions(cast(FeedSource, Log(WRITTEN)))
    return lambda: known.of(b"a" * 16, 0, 6)


def of_the_past(work: Work, monkeypatch: pytest.MonkeyPatch) -> Asked:
    class NoCheckpoints:
        infos = ()

    def carried_on(step: past.ReplayStep, *_: object) -> past.ReplayStep:
        work()
        return step._replace(is_there=True)

    monkeypatch.setattr(past, "_carried_on", carried_on)
    images = PastImages(
        cast(FeedSource, Log(WRITTEN)), cast(Checkpoints, NoCheckpoints()), lambda: (EMPTY_IMAGE,), lambda: 0.0
    )
    return lambda: images.at(parse_moment("6"))


def of_the_audit(work: Work, monkeypatch: pytest.MonkeyPatch) -> Asked:
    class Lines:
        page = staticmethod(work)

    reading = AuditReading(cast(AuditLines, Lines()))
    return lambda: reading.page(AuditParameters())


@pytest.mark.parametrize("asked_of", [of_absences, of_additions, of_the_past, of_the_audit])
async def test_read_that_was_given_up_keeps_its_turn_until_its_thread_ends(
    asked_of: Callable[[Work, pytest.MonkeyPatch], Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(AuditPage([], None, None) if asked_of is of_the_audit else 6)
    ask = asked_of(work, monkeypatch)

    async def has_begun() -> bool:
        return work.begun == 1

    first = asyncio.ensure_future(ask())
    await eventually(has_begun, "it is under way on a thread")
    first.cancel()
    await asyncio.wait({first})
    others = [asyncio.ensure_future(ask()) for _ in range(3)]
    done, _ = await asyncio.wait(others, timeout=0.05)
    assert (work.begun, done) == (1, set())
    work.may_end.set()
    await asyncio.gather(*others, return_exceptions=True)  # an old state that is not reached is refused
    assert work.begun > 1
    assert work.most_at_once == 1
