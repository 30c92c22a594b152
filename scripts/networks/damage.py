"""Tests the checker of histories: a history that it accepts is damaged, and it must notice."""

from __future__ import annotations

from dataclasses import replace

from quorate.scripts.simulation.system.history import CallHistory
from quorate.scripts.simulation.system.topic_register import ReadTopic

#: No client ever sets it.
_NEVER_SET = "4"


def is_noticed(history: CallHistory) -> bool:
    """Whether a copy of a history, in which the last read of a topic saw what nobody wrote, is found to be wrong."""
    for number, asked in reversed(list(enumerate(history.asked))):
        action = asked.action
        if asked.answered is not None and isinstance(action, ReadTopic) and action.seen is not None:
            other = replace(asked, action=ReadTopic(replace(action.seen, value=_NEVER_SET)))
            calls = [*history.asked[:number], other, *history.asked[number + 1 :]]
            return CallHistory([call for call in calls if call.topic == asked.topic]).check()[0] is not None
    return False
