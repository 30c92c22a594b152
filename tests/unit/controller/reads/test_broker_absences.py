"""Since when brokers are absent, by a log that grows: what is read of it again, and what is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quorate.controller.feed.feed import FeedChunk, FeedSource
from quorate.controller.reads import broker_absences
from quorate.controller.reads.broker_absences import LogAbsences
from quorate.controller.reads.quiet_stretches import QuietStretches
from quorate.metadata_log.records.records import Record
from tests.unit.controller.reads.test_absences import FENCED, REGISTERED, UNFENCED, log

#: Fenced with record 0, 2 and 4.
WRITTEN = (REGISTERED, UNFENCED, FENCED, UNFENCED, FENCED, UNFENCED)


@dataclass
class Log:
    """A log of which one batch is read at a time."""

    records: tuple[Record, ...]
    log_start_offset: int = 0
    read: list[int] = field(default_factory=list)
    #: Is called with the position of each reading.
    when_read: Any = lambda _: None

    @property
    def high_watermark(self) -> int:
        return len(self.records)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        self.when_read(offset)
        self.read.append(offset)
        before, data = log(*self.records[:offset]), log(*self.records[: offset + 1])
        return FeedChunk(data[len(before) :], offset, offset + 1, 1, is_cut=False)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_absences, "PATIENCE_S", 60.0)


def of(source: Log, quiet: QuietStretches | None = None) -> LogAbsences:
    return LogAbsences(cast(FeedSource, source), quiet)


async def test_log_is_read_once_for_its_end_and_for_states_of_a_while_ago() -> None:
    source = Log(WRITTEN)
    absences = of(source)
    assert await absences.at(6) == {}
    assert await absences.at(5) == {11: 5}
    assert await absences.at(4) == {}
    assert source.read == [0, 1, 2, 3, 4, 5]


async def test_question_about_a_state_long_ago_reads_the_log_and_keeps_nobody_waiting() -> None:
    source = Log(WRITTEN)
    absences = of(source)
    await absences.at(6)
    source.read.clear()
    now: list[asyncio.Task[Any]] = []
    loop = asyncio.get_running_loop()

    def ask_now(offset: int) -> None:
        if not now:
            now.append(loop.create_task(absences.at(6)))
        elif offset == 2:
            assert now[0].done(), "it was answered in the middle of the long reading"

    source.when_read = ask_now
    assert await absences.at(3) == {11: 3}
    assert source.read == [0, 1, 2]


async def test_reading_that_fails_is_gone_on_with_where_it_failed() -> None:
    source = Log(WRITTEN)
    absences = of(source)

    def fail_once(offset: int) -> None:
        if offset == 3:
            source.when_read = lambda _: None
            raise OSError("the disk")

    source.when_read = fail_once
    with pytest.raises(OSError, match="the disk"):
        await absences.at(6)
    assert await absences.at(6) == {}
    assert source.read == [0, 1, 2, 3, 4, 5]


async def test_absences_begin_anew_where_retention_has_overtaken_them() -> None:
    source = Log(WRITTEN)
    absences = of(source)
    assert await absences.at(3) == {11: 3}
    source.log_start_offset = 5
    assert await absences.at(6) == {}
    assert source.read[-1] == 5
