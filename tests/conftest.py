"""What every test shares: the captured data, hypothesis profiles, and the check that nothing is left running."""

import asyncio
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

DATA_DIRECTORY = Path(__file__).parent / "data"

# A background job of a shell starts with SIGINT ignored, and every process that a test starts would inherit that: then
# no test could press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A shared machine is slow at times: no example is judged by its duration, the timeout of the test stands above all.
settings.register_profile("dev", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# The same examples on every run, nothing kept between runs.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
# For a search by hand: scripts/test --hypothesis-profile=long tests/property
settings.register_profile("long", settings.get_profile("dev"), max_examples=5_000, phases=set(Phase) - {Phase.explain})
settings.load_profile("dev")


@pytest.fixture(scope="session")
def kafka_data() -> Path:
    """The directory of the captured Kafka clusters; tests/data/README.md says what is in it."""
    return DATA_DIRECTORY / "kafka"


def child_processes() -> set[int]:
    """Return the ids of this process's children, of all its threads; empty where there is no /proc."""
    found: set[int] = set()
    for children in Path("/proc/self/task").glob("*/children"):
        # A thread may end while it is looked at; its children are the others' then.
        with suppress(FileNotFoundError):
            found.update(map(int, children.read_text().split()))
    return found


def lasting_threads() -> set[threading.Thread]:
    """Return the threads that would keep the program alive.

    The default executor of an event loop is not counted: it is closed with the loop, which outlives this check.
    """
    return {thread for thread in threading.enumerate() if not thread.daemon and not thread.name.startswith("asyncio_")}


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """Fail the test that leaves a process or a thread behind it."""
    processes_before, threads_before = child_processes(), lasting_threads()
    yield
    processes, threads = child_processes() - processes_before, lasting_threads() - threads_before
    assert not processes, f"the test left processes running: {sorted(processes)}"
    assert not threads, f"the test left threads running: {threads}"


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    """Fail the test that leaves an asyncio task behind it: closing the loop would cancel it unseen."""
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
    assert not left, f"the test left tasks running: {left}"


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups, wherever the run begins
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Watch the tasks of async tests, and keep tests that start processes off each other's cores."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            # First in, so torn down last, after the fixtures that close what the test used.
            item.fixturenames.insert(0, "_no_task_left")
        if "integration" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("processes"))
