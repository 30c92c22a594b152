"""Nothing that a controller process does may fail unheard."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, cast

import pytest

from quorate.controller.client.connection import NoAnswer
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import FAULT_EXIT, ProcessFaults
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.process.digest_watch import ControllerDigestWatch
from quorate.controller.process.process_life import in_background
from quorate.controller.process.registrar import Registrar
from quorate.scripts.terminal import exit_codes
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.waiting import eventually

WAIT_S = 10.0


class EndingFaults:
    """Notes what would have ended the process."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, Exception]] = []

    def fault(self, what: str, error: Exception) -> None:
        raise AssertionError("not asked for here")

    def fatal(self, what: str, error: Exception) -> None:
        self.ends.append((what, error))


async def has(faults: EndingFaults) -> None:
    async def look() -> bool:
        return bool(faults.ends)

    await eventually(look, "the process ends", WAIT_S)


@pytest.mark.parametrize("delay_ms", [None, 1.0], ids=["soon", "timer"])
async def test_event_that_raises_is_fatal(delay_ms: float | None) -> None:
    faults, error = EndingFaults(), KeyError("a bug")
    scheduler = LoopScheduler(faults)

    def fail() -> None:
        raise error

    if delay_ms is None:
        scheduler.call_soon(fail)
    else:
        scheduler.call_later(delay_ms, fail)
    await has(faults)

    assert faults.ends == [("an event of the controller", error)]


async def test_work_beside_that_raises_is_fatal() -> None:
    faults, error = EndingFaults(), ValueError("a bug")

    async def fail() -> None:
        raise error

    await in_background("some work", fail, faults)

    assert faults.ends == [("some work", error)]


class Unanswered:
    """A client whose every request is sent and not answered."""

    def __init__(self) -> None:
        self.asked = 0

    async def register_controller(self, request: Any) -> None:
        self.asked += 1
        raise NoAnswer("its answer could not be read")


async def test_registrar_tries_again_whatever_became_of_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.controller.process.registrar._PAUSE_S", 0.01)
    monkeypatch.setattr("quorate.controller.process.registrar.is_wanting", lambda image, own: True)
    client = Unanswered()
    controller, own = cast("Any", type("Controller", (), {"stable": None})), cast("Any", type("Own", (), {}))
    own.controller_id = 1
    task = asyncio.create_task(Registrar(controller, own, cast("Any", client)).run())

    async def is_asked_again() -> bool:
        return client.asked >= 2

    try:
        await eventually(is_asked_again, "a second attempt", WAIT_S)
    finally:
        task.cancel()
    assert not task.done()


async def test_digest_watch_goes_on_after_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.controller.process.digest_watch.INTERVAL_SECONDS", 0.01)

    class Digests:
        spent_seconds = 0.0
        doubted = asyncio.Event()
        asked = 0

        async def at(self, offset: int | None, wait_ms: float) -> tuple[int, str]:
            self.asked += 1
            raise NoAnswer("no digest")

    digests = Digests()
    node = cast("Any", type("Node", (), {"digests": digests}))
    watch = ControllerDigestWatch(node, cast("Any", None), cast("Any", RecordingFaults()), Counters())
    task = asyncio.create_task(watch.run())

    async def is_asked_again() -> bool:
        return digests.asked >= 2

    try:
        await eventually(is_asked_again, "a second comparison", WAIT_S)
    finally:
        task.cancel()


_ENDS = """
import asyncio, sys
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
if sys.argv[1] == "full":
    sys.stderr = open("/dev/full", "w")
ProcessFaults(Counters()).fatal("controller 1 must stop", ValueError("a bug"))
"""


@pytest.mark.parametrize("log", ["there", "full"])
def test_fatal_fault_ends_the_process_with_a_sentence_and_a_code_of_its_own(log: str) -> None:
    """Also where the sentence cannot be written."""
    done = subprocess.run([sys.executable, "-c", _ENDS, log], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == FAULT_EXIT == exit_codes.FAULT
    if log == "there":
        assert done.stderr.endswith("quorate: controller 1 must stop: a bug\n")


async def test_exception_that_the_loop_would_only_log_is_a_fault() -> None:
    counters = Counters()
    faults = ProcessFaults(counters)
    loop = asyncio.get_running_loop()
    usual = loop.get_exception_handler()
    loop.set_exception_handler(faults.unhandled)
    try:
        loop.call_soon([].pop)

        async def is_seen() -> bool:
            return counters.metadata_errors == 1

        await eventually(is_seen, "the fault", WAIT_S)
    finally:
        loop.set_exception_handler(usual)
    assert "pop from empty list" in faults.sentences[0]
