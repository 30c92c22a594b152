"""What every test shares: captured data, hypothesis profiles, patches, and the check that nothing is left running."""

import asyncio
import faulthandler
import gc
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, Phase, core, settings
from hypothesis.internal.conjecture import providers
from hypothesis.vendor import pretty

from tests.guards.patching import patching
from tests.guards.sound_images import take_broken
from tests.guards.workers import group_of, number_of_workers

DATA_DIRECTORY = Path(__file__).parent / "data"

# A background job of a shell starts with SIGINT ignored, and every process that a test starts would inherit that: then
# no test could press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A shared machine is slow at times: no example is judged by its duration, the timeout of the test stands above all.
settings.register_profile("patient", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
#: The same examples on every run, nothing kept between runs: the same code has the same verdict.
settings.register_profile("fixed", settings.get_profile("patient"), derandomize=True, database=None)
#: Examples that are drawn, and more of them: scripts/test --explore
settings.register_profile("explore", settings.get_profile("patient"), max_examples=300)
# For a search by hand: scripts/test --hypothesis-profile=long tests/property
settings.register_profile(
    "long", settings.get_profile("explore"), max_examples=5_000, phases=set(Phase) - {Phase.explain}
)
settings.load_profile("fixed")

#: New objects before the youngest are looked through, many times more than Python's own value, and how many such looks
#: before the older ones are. Nearly all that a test makes goes without the collector; a few cycles may wait for it.
_COLLECTOR_THRESHOLDS = (10_000, 10, 10)

#: Of the order of the tests and of ``random`` in them, where none is given.
_ORDER_SEED = 0


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Tests run in a shuffled order, which is always the same unless ``--randomly-seed`` says another.

    And Hypothesis shows the values on which a test fails: the plugin of Schemathesis, which is loaded by now, has it
    print nothing of them.
    """
    setattr(core, "RepresentationPrinter", pretty.RepresentationPrinter)  # noqa: B010  # not a name that it exports
    if config.getoption("randomly_seed", None) == "default":
        config.option.randomly_seed = _ORDER_SEED


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Take from the fixed examples what depends on who runs where.

    Hypothesis draws one value in twenty from the constants in the project's modules that are loaded by then; which are,
    depends on what ran before in the same process.
    """
    if settings.get_current_profile_name() == "fixed":
        setattr(providers, "is_local_module_file", lambda path: False)  # noqa: B010  # not a name that it exports


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Have the collector of cycles pass over what lives as long as the run: all modules, all tests.

    It would go through all of them again and again, and take a good part of a worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Have a test that failed ended when it hangs all the same, as in its teardown: pytest would no longer watch it."""
    if isinstance(node, pytest.Collector):
        return
    seconds, stderr = float(node.config.getini("faulthandler_timeout")), node.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(seconds, file=stderr, exit=True)


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


@pytest.fixture(autouse=True)
def _ctrl_c_is_pythons_own() -> Iterator[None]:
    """Fail the test that leaves Ctrl-C to somebody: the next one that presses it would be heard by nobody."""
    yield
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handler is signal.default_int_handler, f"the test left SIGINT to {handler}"


@pytest.fixture(autouse=True)
def _images_are_sound() -> Iterator[None]:
    """Fail the test that leaves a controller or a broker with an image that breaks a rule of every image."""
    yield
    broken = take_broken()
    assert not broken, "\n".join(["the test left images that break rules of every image:", *broken])


@pytest.fixture
def monkeypatch() -> Iterator[pytest.MonkeyPatch]:
    """Pytest's own, with empty caches before and after: no test gets an answer that patched code gave to another."""
    with patching() as patch:
        yield patch


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    """Fail the test that leaves an asyncio task behind it: closing the loop would cancel it unseen."""
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
    assert not left, f"the test left tasks running: {left}"


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int | None:
    return number_of_workers()


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups, wherever the run begins
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Watch the tasks of async tests, and have those run in one worker that share what is dear: cores, syntax trees."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            # First in, so torn down last, after the fixtures that close what the test used.
            item.fixturenames.insert(0, "_no_task_left")
        group = group_of(item.path)
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
