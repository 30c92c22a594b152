"""Append messages of a pass: one for all followers that are level, another where anything in it differs."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.metadata_log.directory.quorum_state import QuorumStateStore
from quorate.quorum.config import VoterAddress
from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import Append
from quorate.quorum.replication.append_messages import AppendMessages
from quorate.quorum.storage.leader_change import VoterHistory
from quorate.quorum.storage.votes import VoteState
from tests.default_parts import quorum_config
from tests.log_support import DIRECTORY, ModelledLog


class Owner:
    """Nothing is sent by the library here, and nobody stands for election."""

    def core_send(self, peer: int, message: dict[str, Any]) -> None:
        raise AssertionError(message)

    def core_may_campaign(self) -> bool:
        return False

    def core_elected(self) -> None:
        raise AssertionError


@pytest.fixture
def messages() -> AppendMessages:
    modelled = ModelledLog()
    for _ in range(5):
        modelled.append(epoch=1)
    voters = tuple(VoterAddress(node_id, "127.0.0.1", 9000 + node_id) for node_id in (1, 2, 3))
    votes = VoteState(QuorumStateStore(modelled.disk, DIRECTORY), None, 1, quorum_config("c", 1, bytes(16), voters))
    journal = LogJournal(modelled.log, votes, VoterHistory(modelled.log), 100, 10**6, lambda: b"")
    return AppendMessages(RaftCore(1, (2, 3), journal, Owner()), journal)


DATA = b"batches"


def after(messages: AppendMessages, prev_index: int, batches: bytes = DATA, *, is_vouched: bool = False) -> Append:
    return messages.after(prev_index, batches, 7, 3, is_vouched=is_vouched)


def test_followers_that_are_level_are_sent_the_same_message(messages: AppendMessages) -> None:
    assert after(messages, 4) is after(messages, 4)


def test_message_names_the_end_and_the_epoch_of_the_entry_before_it(messages: AppendMessages) -> None:
    messages.set_acknowledged([(2, 5), (3, 4)])

    first, second = after(messages, 3), after(messages, 4)

    assert first.prev_end < second.prev_end
    assert (second.prev_epoch, second.round, second.high_watermark) == (1, 7, 3)
    assert second.batches is DATA
    assert second.acknowledged == ((2, 5), (3, 4))


def test_another_entry_other_batches_or_vouching_make_another_message(messages: AppendMessages) -> None:
    usual = after(messages, 4)

    assert after(messages, 3).prev_end != usual.prev_end
    assert after(messages, 4, b"others").batches == b"others"
    assert after(messages, 4, is_vouched=True).is_vouched


def test_message_of_the_last_pass_is_not_sent_in_the_next(messages: AppendMessages) -> None:
    before = after(messages, 4)
    messages.pass_ended()

    later = messages.after(4, DATA, 8, 5, is_vouched=False)

    assert (before.round, later.round, later.high_watermark) == (7, 8, 5)
