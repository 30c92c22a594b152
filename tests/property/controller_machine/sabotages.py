"""Single lines of production turned into mistakes: what the machine must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine import quorum_controller
from quorate.controller.engine.findings import Findings
from quorate.controller.engine.head import Head
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.engine.purgatory import Purgatory
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations import active_role
from quorate.controller.operations.bootstrap import decide_activation
from quorate.metadata_log.errors import NotController
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table import table_editor
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.row_changes import columns_in_place
from tests.property.controller_machine.stage import Stage
from tests.unit.controller.small_cluster import uuid

Sabotage = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Purgatory, "add", lambda _, __, reply, result: reply.complete(result))


def acknowledge_a_little_early(patch: pytest.MonkeyPatch) -> None:
    usual = Purgatory.add
    patch.setattr(Purgatory, "add", lambda self, end, reply, result: usual(self, end - 12, reply, result))


def answer_without_waiting_for_what_it_rests_on(patch: pytest.MonkeyPatch) -> None:
    usual = Findings.add
    patch.setattr(Findings, "add", lambda self, _, give, fail: usual(self, 0, give, fail))


def answer_without_records_without_a_majority(patch: pytest.MonkeyPatch) -> None:
    def ask(self: Findings, _: object) -> None:
        self._confirmed = self._asked + 1
        self.complete_up_to(self._committed)

    patch.setattr(Findings, "ask", ask)


def forget_the_findings_at_renounce(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Findings, "fail_all", lambda self, _: self._waiting.clear())


def answer_twice(patch: pytest.MonkeyPatch) -> None:
    usual = Purgatory.complete_up_to

    def complete(self: Purgatory, high_watermark: int) -> None:
        waiting = self._waiting.copy()
        usual(self, high_watermark)
        self._waiting = waiting

    patch.setattr(Purgatory, "complete_up_to", complete)


def forget_what_waits_at_renounce(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Purgatory, "fail_all", lambda self, _: self._waiting.clear())


def keep_what_waits_at_renounce(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Purgatory, "fail_all", lambda _, __: None)


def say_refused_where_the_outcome_is_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quorum_controller, "OutcomeUnknown", lambda *_: NotController(None))


def decide_on_the_stable_state(patch: pytest.MonkeyPatch) -> None:
    deciding: list[QuorumController] = []
    usual = QuorumController._decide

    def decide(self: QuorumController, *rest: Any) -> None:
        deciding[:] = [self]
        usual(self, *rest)

    def context(_: MetadataImage, *rest: Any) -> WriteContext:
        return WriteContext(deciding[0].stable, *rest)

    patch.setattr(QuorumController, "_decide", decide)
    patch.setattr(quorum_controller, "WriteContext", context)


def leave_the_head_as_it_was(patch: pytest.MonkeyPatch) -> None:
    usual = Head.stage

    def stage(self: Head, *rest: Any) -> None:
        before = self.state
        usual(self, *rest)
        self.state = before

    patch.setattr(Head, "stage", stage)


def take_all_of_the_head_for_committed(patch: pytest.MonkeyPatch) -> None:
    usual = Head.commit
    patch.setattr(Head, "commit", lambda self, _: usual(self, 2**62))


def stay_active_when_leadership_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumController, "_renounce", lambda _: None)


def begin_an_epoch_with_the_head_of_the_last(patch: pytest.MonkeyPatch) -> None:
    heads: dict[int, Head] = {}
    usual = QuorumController._claim

    def claim(self: QuorumController, epoch: int) -> None:
        usual(self, epoch)
        head = self._head
        assert head is not None
        head.state = heads[self.node_id].state if self.node_id in heads else head.state
        heads[self.node_id] = head

    patch.setattr(QuorumController, "_claim", claim)


def begin_an_epoch_inside_a_transaction(patch: pytest.MonkeyPatch) -> None:
    usual = decide_activation

    def activation(state: ReplayState, *rest: Any) -> Decision[None]:
        return Decision((), None) if state.in_transaction else usual(state, *rest)

    patch.setattr(active_role, "decide_activation", activation)


def read_without_a_barrier(patch: pytest.MonkeyPatch) -> None:
    async def read(self: QuorumController, operation: Callable[[Any], Any], *, is_linearizable: bool = False) -> Any:
        return operation(self.stable)

    patch.setattr(QuorumController, "append_read_event", read)


def elect_whoever_is_registered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerRegistration, "is_active", property(lambda _: True))


def keep_the_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    usual = columns_in_place

    def columns(*change: Any) -> dict[str, Any] | None:
        changed = usual(*change)
        return changed and {name: value for name, value in changed.items() if name != "leader_epochs"}

    patch.setattr(table_editor, "columns_in_place", columns)


def give_an_id_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stage, "new_topic_id", lambda _: uuid(3, 7))


def register_under_the_epoch_before(patch: pytest.MonkeyPatch) -> None:
    usual = WriteContext

    def context(image: MetadataImage, offset: int, *rest: Any) -> WriteContext:
        return usual(image, max(0, offset - 40), *rest)

    patch.setattr(quorum_controller, "WriteContext", context)


def skip_a_slice_of_a_pass(patch: pytest.MonkeyPatch) -> None:
    usual = QuorumController._begin_pass

    def begin(self: QuorumController, head: Head, request: Any, decision: Any, slices: Any) -> None:
        usual(self, head, request, decision, list(slices)[1:] or slices)

    patch.setattr(QuorumController, "_begin_pass", begin)


SABOTAGES: tuple[Sabotage, ...] = (
    acknowledge_before_commit,
    acknowledge_a_little_early,
    answer_without_waiting_for_what_it_rests_on,
    answer_without_records_without_a_majority,
    forget_the_findings_at_renounce,
    answer_twice,
    forget_what_waits_at_renounce,
    keep_what_waits_at_renounce,
    say_refused_where_the_outcome_is_unknown,
    decide_on_the_stable_state,
    leave_the_head_as_it_was,
    take_all_of_the_head_for_committed,
    stay_active_when_leadership_is_lost,
    begin_an_epoch_with_the_head_of_the_last,
    begin_an_epoch_inside_a_transaction,
    read_without_a_barrier,
    elect_whoever_is_registered,
    keep_the_leader_epoch,
    give_an_id_twice,
    register_under_the_epoch_before,
    skip_a_slice_of_a_pass,
)
