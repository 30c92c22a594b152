"""The followers' reports to leaders, read off the wire: nobody enters an ISR who did not report so.

A reader of its own: it knows what a message means, and nothing of how leaders keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.broker.replicas.messages import UNSAID, FollowAnswer, FollowMessage, decode_answer, decode_message
from quorate.broker.replicas.peers import FOLLOW_PATH
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.scripts.simulation.system.http_wire import WireAnswer, WireRequest


class SaidMember(NamedTuple):
    """A replica under its broker's registration, and its leader's epoch."""

    topic_id: Uuid
    partition: int
    leader_epoch: int
    broker: int
    broker_epoch: int


@dataclass(slots=True)
class _SaidSession:
    #: Those that the session's position speaks for.
    members: set[SaidMember] = field(default_factory=set)
    #: Where the logs ended by the last answer.
    log_end: int | None = None


class SaidLevel:
    """The replicas that have ever said to be level, by answered messages."""

    def __init__(self) -> None:
        self._sessions: dict[int, _SaidSession] = {}
        self._level: set[SaidMember] = set()

    def answered(self, request: WireRequest, answer: WireAnswer) -> None:
        """A broker process answers."""
        if request.path != FOLLOW_PATH or answer.status != 200:
            return
        message, reply = decode_message(request.body), decode_answer(answer.body)
        if reply.error is ErrorCode.NONE:
            self._note(message, reply)

    def has_said(self, member: SaidMember) -> bool:
        """Whether it has."""
        return member in self._level

    def _note(self, message: FollowMessage, reply: FollowAnswer) -> None:
        session = self._sessions.setdefault(message.session, _SaidSession())
        epochs = {broker: epoch for broker, epoch in message.followers if broker not in reply.refused_followers}
        session.members = {one for one in session.members if epochs.get(one.broker) == one.broker_epoch}
        rows, refused = message.rows, set(reply.refused_rows.tolist())
        for at in range(len(rows)):
            broker = int(rows.followers[at])
            if at in refused or broker not in epochs or not rows.is_level[at]:
                continue
            topic_id, partition = rows.topic_ids[at].tobytes(), int(rows.partition_ids[at])
            leader_epoch = int(rows.leader_epochs[at])
            session.members.add(SaidMember(topic_id, partition, leader_epoch, broker, epochs[broker]))
        if session.log_end is not None and message.position != UNSAID and message.position >= session.log_end:
            self._level |= session.members
        session.log_end = reply.log_end
