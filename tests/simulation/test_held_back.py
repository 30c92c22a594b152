"""When a leader serves the followers that a commit does not wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from quorate.quorum.messages.messages import Append, Message
from quorate.scripts.simulation.quorum.stage import QuorumStage
from tests.default_parts import quorum_timing

HOLD_BACK_S: Final = quorum_timing().hold_back
#: For messages and disks of a quiet stage.
SLACK_S: Final = 0.003


class Entries:
    """Who was sent entries by node 0, in order."""

    def __init__(self, stage: QuorumStage) -> None:
        self.to: list[int] = []
        #: Nodes that nothing reaches.
        self.lost: set[int] = set()
        stage.swallow = self._look

    def _look(self, source: int, target: int, message: Message) -> bool:
        if source == 0 and isinstance(message, Append) and message.batches:
            self.to.append(target)
        return target in self.lost

    @contextmanager
    def during(self) -> Iterator[list[int]]:
        """Those of a stretch of time only."""
        self.to.clear()
        yield self.to


def led_stage(voters: int = 3) -> tuple[QuorumStage, Entries]:
    stage = QuorumStage(1, voters)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.pass_time(0.05)
    return stage, Entries(stage)


def everybody_has(stage: QuorumStage, end: int) -> bool:
    return all(stage.end_of(index) == end for index in range(len(stage.nodes)))


def test_commit_is_waited_for_by_a_majority_only_and_the_others_follow() -> None:
    for voters, first in ((3, 1), (5, 2)):
        stage, entries = led_stage(voters)
        with entries.during() as sent_to:
            end = stage.write_acknowledged(0)
            assert len(sent_to) == first

            stage.wait("the others", lambda stage=stage, end=end: everybody_has(stage, end), HOLD_BACK_S + SLACK_S)  # type: ignore[misc]
            assert len(set(sent_to)) == voters - 1
        stage.finish()


def test_followers_that_are_held_back_get_several_entries_at_once() -> None:
    stage, entries = led_stage()
    late = 2
    # Else it may be the first to acknowledge what it gets in the end, and then the other one is held back.
    stage.nodes[late].hang_disk()
    stage.write_acknowledged(0)
    stage.pass_time(0.05)
    with entries.during() as sent_to:
        begun = stage.world.scheduler.now
        while stage.world.scheduler.now - begun < 2 * HOLD_BACK_S:
            end = stage.write_acknowledged(0)
        assert 2 <= 2 * sent_to.count(late) <= len(sent_to) - sent_to.count(late)
    stage.nodes[late].wake_disk()
    stage.wait("the follower held back", lambda: everybody_has(stage, end), HOLD_BACK_S + SLACK_S)
    stage.finish()


def test_follower_that_does_not_answer_delays_one_commit_and_is_not_waited_for_again() -> None:
    stage, entries = led_stage()
    with entries.during() as sent_to:
        stage.write_acknowledged(0)
        first = sent_to[0]
    stage.pass_time(0.05)
    entries.lost = {first}

    end = stage.write(0)
    stage.wait("the commit", lambda: end in stage.world.checks.acknowledged, HOLD_BACK_S + SLACK_S)
    with entries.during() as sent_to:
        end = stage.write(0)
        stage.wait("the next one", lambda: end in stage.world.checks.acknowledged, SLACK_S)
        assert sent_to[0] != first

    entries.lost = set()
    stage.finish()
