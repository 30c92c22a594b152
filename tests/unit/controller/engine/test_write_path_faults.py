"""A fault at every seam and every ``await`` of the write path.

Whatever fails where: no reply without its commit; no commit without its reply or an "outcome unknown"; the controller
goes on, has renounced, or its process has ended, and is never a leader that does not serve; what is left of the log
replays to the state that everybody has.

The places are found in the source: a new one fails a test here until it has its faults.
"""

from __future__ import annotations

import ast
import errno
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from quorate.controller.api import content
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine import confirmed_reads, interfaces, quorum_controller, stable_readers
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.http import dispatch, forwarding
from quorate.metadata_log.errors import ApiError, ErrorCode, MalformedData, NotController, OutcomeUnknown
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.replay.replay_state import ReplayState
from tests.property.controller_machine.stage import Node, Stage
from tests.unit.controller.manual_quorum import topic

ERRORS: tuple[Callable[[], Exception], ...] = (
    lambda: OSError(errno.ENOSPC, "no space left"),
    lambda: NotController(2),
    lambda: ApiError(ErrorCode.INVALID_REQUEST, "refused"),
    lambda: ReplayError("cannot be replayed"),
    lambda: MalformedData("cannot be encoded"),
)
#: What a seam is called by in ``controller.engine.quorum_controller``.
SEAM_OWNERS = (
    "self._quorum",
    "self._role",
    "head",
    "self._head",
    "self._state",
    "self._purgatory",
    "self._findings",
    "self._readers",
    "reply",
    "request",
    "request.reply",
)
SEAM_CALLS = ("operation", "part", "self.on_stable", "self.on_decided")


class ProcessEnded(BaseException):
    """What ``os._exit`` is in production: nothing after it runs."""


class EndingFaults:
    """Faults are noted; a fatal one ends the process."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Exception]] = []

    def fault(self, what: str, error: Exception) -> None:
        self.seen.append((what, error))

    def fatal(self, what: str, error: Exception) -> NoReturn:
        self.seen.append((what, error))
        raise ProcessEnded(what)


@dataclass
class Fault:
    """Raised once, at one place, while armed."""

    make: Callable[[], Exception]
    is_armed: bool = False
    is_over: bool = False

    def strike(self) -> None:
        if self.is_armed and not self.is_over:
            self.is_over = True
            raise self.make()

    def before(self, owner: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        """The method of an object, or of all objects of a class, fails before it does anything."""
        usual = getattr(owner, name)

        def failing(*args: Any, **options: Any) -> Any:
            self.strike()
            return usual(*args, **options)

        patch.setattr(owner, name, failing)


@dataclass
class Story:
    """Writes before, at and behind a fault, and what follows: commits, a standby that hears of them, another leader."""

    fault: Fault
    stage: Stage = field(default_factory=Stage)
    ended: list[BaseException] = field(default_factory=list)
    logged: list[Exception] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.node = self.stage.nodes[1]
        for node in self.stage.nodes.values():
            node.faults = node.controller._faults = EndingFaults()  # type: ignore[assignment]
        self.stage.elect(self.node, 0)
        self.everything_commits()

    def write(self, *, slices: int = 0, is_needed: bool = True) -> None:
        """A topic; or many, in slices of a pass; or nothing, for all is as it should be."""
        self.number += 1
        records = [topic(self.number * 100 + n) for n in range(slices or 1)] if is_needed else []

        def part(record: Any) -> Callable[[Any], Any]:
            def decide(_: object) -> Any:
                self.strike("part")
                return [record]

            return decide

        def operation(_: WriteContext) -> Decision[str]:
            self.strike("operation")
            if slices:
                return Decision([], "done", is_atomic=False, is_internal=True, slices=[part(r) for r in records])
            return Decision(records, "done")

        def applied(_: object, __: int) -> None:
            self.strike("applied")

        self.stage.ask(lambda n: n.controller.append_write_event("write", operation, 5_000.0, applied), self.node)

    #: Which of the places in a request itself fails; "" = none.
    place = ""

    def strike(self, place: str) -> None:
        if place == self.place:
            self.fault.strike()

    def turns(self, count: int = 10) -> None:
        """Turns of the node's loop, which logs what an event lets out, and goes on."""
        for _ in range(count):
            try:
                self.node.scheduler.run_turn()
            except ProcessEnded as end:
                self.end(end)
            except Exception as error:  # noqa: BLE001 - the loop's exception handler takes anything
                self.logged.append(error)
        self.stage.loop.run_ready()

    def hears(self, node: Node, what: Callable[[], None]) -> None:
        """The quorum calls its listener. Raising there is a fatal fault of the quorum."""
        try:
            what()
        except (ProcessEnded, Exception) as end:  # noqa: BLE001 - as above
            self.end(end, node)
        self.stage.loop.run_ready()

    def end(self, how: BaseException, node: Node | None = None) -> None:
        """The process is gone: its clients know nothing. Another starts in its place."""
        node = node or self.node
        self.ended.append(how)
        self.stage.restart(node)
        node.faults = node.controller._faults = EndingFaults()  # type: ignore[assignment]
        for trace in self.stage.traces.all:
            if trace.node is node.member and not trace.answers:
                trace.answers.append(OutcomeUnknown("the connection broke"))

    def everything_commits(self) -> None:
        self.turns()
        self.stage.commit(1_000)
        for node in self.stage.nodes.values():
            self.hears(node, lambda node=node: node.member.learn())  # type: ignore[misc] # mypy: default of a lambda
            self.hears(node, lambda node=node: node.member.deliver(1_000))  # type: ignore[misc]
        self.turns()

    def run(self) -> None:
        self.write()
        self.turns()
        self.stage.commit(1_000)
        self.hears(self.node, lambda: self.node.member.deliver(1_000))
        self.write()
        self.turns()  # appended, not committed
        self.fault.is_armed = True
        self.write()
        self.write(slices=3)
        self.write(is_needed=False)
        self.write()
        self.turns()
        self.stage.read(self.node)
        self.write()
        self.serves_or_not()
        self.everything_commits()
        self.serves_or_not()
        if self.stage.log.leader is None:
            self.stage.elect(self.node, 1_000)
            self.everything_commits()
        self.write()
        self.hears(self.node, lambda: self.stage.elect(self.stage.nodes[2], 0))
        self.everything_commits()
        self.stage.elect(self.stage.nodes[1], 0)
        self.everything_commits()
        self.write()
        self.everything_commits()
        self.serves_or_not()
        self.node.controller.close()
        assert self.fault.is_over, "nothing struck: this story never comes to the place"

    def raised_to_clients(self) -> list[BaseException]:
        """What the HTTP server answers with 500."""
        done = [task for task in self.stage.tasks if task.done()]
        self.stage.tasks = [task for task in self.stage.tasks if not task.done()]
        return [error for task in done if not task.cancelled() and (error := task.exception())]

    def serves_or_not(self) -> None:
        """Nobody leads the quorum without serving, or serves without leading."""
        member = self.node.member
        leads = member.leads is not None and member.announced == (1, member.leads)
        assert leads == self.node.controller.is_active

    def finish(self) -> None:
        """Somebody serves again, everybody has the same state, everybody has an answer."""
        self.stage.restart(self.node)
        for node in self.stage.nodes.values():
            node.faults.seen.clear()
        self.stage.finish()


def seams_in_source() -> set[str]:
    """Every call over the controller's borders."""
    trees = [ast.parse(inspect.getsource(module)) for module in (quorum_controller, confirmed_reads)]
    calls = (node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = {ast.unparse(call) for call in calls}
    return {
        name.removeprefix("request.") for name in names if name in SEAM_CALLS or name.rpartition(".")[0] in SEAM_OWNERS
    }


#: Where the fault is put in for a seam: the object's method, by the story it is in.
PLACES: dict[str, Callable[[Story], tuple[Any, str]]] = {
    "self._quorum.append": lambda s: (s.node.member, "append"),
    "self._quorum.resign": lambda s: (s.node.member, "resign"),
    "self._quorum.read_barrier": lambda s: (s.node.member, "read_barrier"),
    "self._role.activation": lambda s: (s.node.role, "activation"),
    "self._role.activated": lambda s: (s.node.role, "activated"),
    "self._role.renounced": lambda s: (s.node.role, "renounced"),
    "head.encode": lambda s: (s.node.controller._head, "encode"),
    "head.fits": lambda s: (s.node.controller._head, "fits"),
    "head.stage": lambda s: (s.node.controller._head, "stage"),
    "head.close_batch": lambda s: (s.node.controller._head, "close_batch"),
    "self._head.commit": lambda s: (s.node.controller._head, "commit"),
    "self._state.replay_batch": lambda _: (ReplayState, "replay_batch"),
    "self._purgatory.complete_up_to": lambda s: (s.node.controller._purgatory, "complete_up_to"),
    "self._purgatory.fail_all": lambda s: (s.node.controller._purgatory, "fail_all"),
    "self._findings.ask": lambda s: (s.node.controller._findings, "ask"),
    "self._findings.complete_up_to": lambda s: (s.node.controller._findings, "complete_up_to"),
    "self._findings.fail_all": lambda s: (s.node.controller._findings, "fail_all"),
    "self._readers.release": lambda s: (s.node.controller._readers, "release"),
    "self.on_stable": lambda s: (s.node.controller, "on_stable"),
    "self.on_decided": lambda s: (s.node.controller, "on_decided"),
    "reply.complete": lambda _: (interfaces.FutureReply, "complete"),
    "reply.fail": lambda _: (interfaces.FutureReply, "fail"),
    "reply.found": lambda _: (interfaces.FutureReply, "found"),
}
#: In the request itself.
OWN_PLACES = ("operation", "applied", "part")
#: Additions to a list, and waiting; what they wake or tell is a seam of its own.
ADDITIONS = {
    "self._purgatory.add",
    "self._findings.add",
    "self._readers.wait",
    "self._readers.fail_all",
    "reply.outcome",
}


#: Looks at values, on the way of no write and outside of every event.
LOOKS = {"self._head.settled"}


def test_every_seam_of_the_controller_has_its_faults() -> None:
    assert seams_in_source() == {*PLACES, *OWN_PLACES, *ADDITIONS, *LOOKS}


@pytest.mark.parametrize("make", ERRORS, ids=lambda make: type(make()).__name__)
@pytest.mark.parametrize("seam", [*PLACES, *OWN_PLACES])
def test_seam_that_fails_leaves_every_promise_kept(
    seam: str, make: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(Fault(make))
    try:
        if seam in OWN_PLACES:
            story.place = seam
        else:
            story.node.controller.on_decided = lambda _: None
            story.fault.before(*PLACES[seam](story), monkeypatch)
        story.run()
        monkeypatch.undo()
        seen: list[BaseException] = [error for node in story.stage.nodes.values() for _, error in node.faults.seen]
        seen += story.raised_to_clients()
        assert seen or story.ended or story.logged or isinstance(make(), ApiError), "a fault that nobody heard of"
        story.finish()
    finally:
        monkeypatch.undo()
        story.stage.close()


HERE = "test_caller_who_leaves_at_any_moment_changes_no_answer_but_its_own"
STRANGERS = "tests/integration/http/test_strangers.py::"
API = "tests/integration/http/test_api.py::"
FEED = "tests/integration/http/test_feed.py::"
BAD_INPUT = "tests/integration/http/test_bad_input.py::"
FORWARDING = "tests/integration/http/test_forwarding.py::"
ISOLATION = "tests/integration/brokers/test_isolation.py::"
#: Every place where the way of a write waits, by function, and the test that cuts the wait short there.
AWAITS: dict[ModuleType, dict[str, str]] = {
    quorum_controller: {"append_write_event": HERE, "append_read_event": HERE},
    confirmed_reads: {"offset": HERE},
    interfaces: {"outcome": HERE},
    stable_readers: {"wait": HERE},
    dispatch: {
        "handle": BAD_INPUT + "test_bug_of_ours_is_500_with_an_incident_that_the_log_tells_of",
        "_answer_raw": FEED + "test_feed_stream_carries_every_batch_until_the_server_ends_it",
        "_read": API + "test_oversized_body_is_refused_whether_it_says_its_size_or_not",
        "_decode": ISOLATION + "test_large_bodies_are_decoded_one_in_a_turn_of_the_loop",
        "_decode_in_turn": ISOLATION + "test_time_of_a_request_goes_on_while_its_body_waits_for_its_turn",
        "_maybe_forward": FORWARDING
        + "test_active_controller_that_is_gone_is_retriable_for_it_cannot_have_done_anything",
        "run_route": FORWARDING + "test_write_that_loses_its_leader_before_the_commit_is_of_unknown_outcome",
        "_run": FORWARDING + "test_write_that_loses_its_leader_before_the_commit_is_of_unknown_outcome",
        "_bounded": FORWARDING + "test_write_that_does_not_commit_in_the_clients_time_is_of_unknown_outcome",
    },
    forwarding: {
        "forward": FORWARDING + "test_active_controller_that_does_not_answer_leaves_the_outcome_of_a_write_unknown",
        "_ask_while_heard": FORWARDING
        + "test_answer_of_a_frozen_controller_is_not_waited_for_when_another_has_taken_over",
        "_ask": FORWARDING + "test_answer_of_a_frozen_controller_is_not_waited_for_when_another_has_taken_over",
    },
    content: {
        "read_body": API + "test_oversized_body_is_refused_whether_it_says_its_size_or_not",
        "_ask_for_body": STRANGERS + "test_nobody_is_asked_for_a_body_before_it_is_known_who_it_is",
    },
}
_WAITING = (ast.Await, ast.AsyncWith, ast.AsyncFor)


def functions_that_wait(module: ModuleType) -> set[str]:
    tree = ast.parse(inspect.getsource(module))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))
    return {f.name for f in functions if any(isinstance(node, _WAITING) for node in ast.walk(f))}


@pytest.mark.parametrize("module", AWAITS, ids=lambda module: module.__name__)
def test_every_wait_of_the_write_path_has_a_test_that_cuts_it_short(module: ModuleType) -> None:
    known = AWAITS[module]
    assert functions_that_wait(module) == set(known)
    for test in set(known.values()) - {HERE}:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (Path(__file__).parents[4] / path).read_text(), f"{test} is not there"


@pytest.mark.parametrize("moment", range(6))
@pytest.mark.parametrize("is_late", [False, True])
def test_caller_who_leaves_at_any_moment_changes_no_answer_but_its_own(moment: int, is_late: bool) -> None:
    """It goes away, or its time is up, before and after each of the things that its write goes through."""
    story = Story(Fault(lambda: AssertionError()))
    stage, node = story.stage, story.node
    try:
        steps: tuple[Callable[[], object], ...] = (
            story.write,
            lambda: node.scheduler.run_turn(),
            lambda: stage.commit(1),
            lambda: node.member.deliver(1),
            lambda: stage.loop.run_ready(),
            story.everything_commits,
        )
        story.write()
        for number, step in enumerate(steps):
            step()
            if number == moment:
                leaving = stage.tasks[-1]
                if is_late:
                    stage.advance(20_000.0, node)
                else:
                    leaving.cancel()
        story.write()
        story.fault.is_over = True
        story.finish()
    finally:
        stage.close()
