"""The JSON of an answer about a cluster: which form it has, and as of when it is true, before everything else.

What a command was answered by is noted by whoever asks (``note_answer``); a command is one process, or one thread of a
test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

#: Of all of them together: it grows when a field goes, or means something else than before. New ones may come.
SCHEMA_VERSION: Final = 1
#: Fields of answers that say themselves which state they are about.
_OFFSET_FIELDS: Final = ("state_offset", "applied_offset")


class _Answered(NamedTuple):
    #: Exclusive end of what whoever answered knew to be committed; None: nobody said.
    offset: int | None
    #: ISO 8601, UTC, by this machine's clock; None: of files, which say the same at any time.
    time: str | None


_ANSWERED: ContextVar[_Answered | None] = ContextVar("answered", default=None)


def note_files(offset: int | None = None) -> None:
    """Files were read: nobody has answered. ``offset``: the end of the state that they gave; None: the answer says."""
    _ANSWERED.set(_Answered(offset, None))


def note_answer(offset: int | None) -> None:
    """Somebody has answered just now. ``offset``: the end of the state that the answer is about; None: unknown."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    _ANSWERED.set(_Answered(offset, now))


def as_document(reply: BaseModel | Mapping[str, Any]) -> str:
    """An answer in one line. One that nobody was asked for says nothing of a state: its ``as_of`` is null."""
    answered = _ANSWERED.get()
    as_of = None
    if answered is not None:
        own = (getattr(reply, name, None) for name in _OFFSET_FIELDS)
        offset = next((one for one in own if isinstance(one, int)), answered.offset)
        as_of = {"offset": offset, "time": answered.time}
    head = json.dumps({"schema_version": SCHEMA_VERSION, "as_of": as_of})
    body = reply.model_dump_json() if isinstance(reply, BaseModel) else json.dumps(reply)
    return head if body == "{}" else f"{head[:-1]}, {body[1:]}"
