"""Messages as bytes: a msgpack array of the type's number and its fields. Anything else is a ``ProtocolError``.

Of each version (``versions``) all types and fields are known, so that what is checked is checked in all of them.

What is decoded could have been meant: every number can stand in a log, and a message does not contradict itself.
Whether it contradicts what the node knows is for those to say who take it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from reprlib import Repr
from typing import Any, Final, overload

import msgpack

from quorate.metadata_log.limits import EPOCH_MAX, OFFSET_MAX
from quorate.metadata_log.records.wire import Buffer
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages import messages
from quorate.quorum.messages.messages import Message
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION

#: The numbers are the protocol: never reused, never renumbered.
_TYPES: Final[dict[int, type[Any]]] = {
    1: messages.Append,
    2: messages.Commit,
    3: messages.AppendReply,
    4: messages.AppendConflict,
    5: messages.StaleEpoch,
    6: messages.PreVote,
    7: messages.PreVoteReply,
    8: messages.Vote,
    9: messages.VoteReply,
    # 10 was TimeoutNow.
    11: messages.EndEpoch,
    12: messages.CheckpointOffer,
    13: messages.CheckpointProgress,
    14: messages.ChunkRequest,
    15: messages.ChunkMessage,
}
#: Types that are not of the oldest version, with the one that they came with. Whoever speaks an older one does without.
_TYPE_SINCE: Final[dict[type[Any], int]] = {messages.Commit: 5}
#: The same of fields, with what they are in the versions before.
_FIELD_SINCE: Final[dict[tuple[type[Any], str], tuple[int, Any]]] = {(messages.Append, "acknowledged"): (5, ())}
#: Written in the field annotations of ``messages``.
_FIELD_TYPES: Final[dict[str, type[Any]]] = {
    "int": int,
    "bool": bool,
    "bytes": bytes,
    "tuple[tuple[int, int], ...]": tuple,
}
#: Pairs in one message: more than a quorum has voters.
_PAIRS_MAX: Final = 1000
#: Counts of types and records, and a digest: a kilobyte in practice.
_MANIFEST_BYTES_MAX: Final = 1024 * 1024
#: The highest number in a field, by its name; offsets, sizes and rounds have the same one.
_HIGHEST: Final = {"epoch": EPOCH_MAX, "prev_epoch": EPOCH_MAX, "last_epoch": EPOCH_MAX, "crc": (1 << 32) - 1}

#: What is wrong may be long and deep.
_SHORT: Final = Repr()

#: What fields of one message must be to each other.
_RULES: Final[dict[type[Any], tuple[str, Callable[[Any], bool]]]] = {
    messages.Append: ("prev_epoch is above epoch", lambda m: m.prev_epoch <= m.epoch),
    messages.AppendReply: ("acked_end is above matched_end", lambda m: m.acked_end <= m.matched_end),
    messages.PreVote: ("last_epoch is not below epoch", lambda m: m.last_epoch < m.epoch),
    messages.Vote: ("last_epoch is not below epoch", lambda m: m.last_epoch < m.epoch),
    messages.CheckpointOffer: (
        "last_epoch is above epoch, or the size is 0, or the manifest too large",
        lambda m: m.last_epoch <= m.epoch and m.size > 0 and len(m.manifest) <= _MANIFEST_BYTES_MAX,
    ),
    messages.ChunkRequest: ("last_epoch is above epoch", lambda m: m.last_epoch <= m.epoch),
    messages.ChunkMessage: ("last_epoch is above epoch", lambda m: m.last_epoch <= m.epoch),
}


@dataclass(frozen=True, slots=True)
class _MessageForm:
    """A type of message in one version."""

    number: int
    types: tuple[type[Any], ...]
    #: The highest number in each field.
    highest: tuple[int, ...]
    #: Gives the fields of a message.
    values: Callable[[Any], tuple[Any, ...]]
    #: Makes a message of its fields.
    make: Callable[..., Any]


def _form(number: int, cls: type[Any], version: int) -> _MessageForm:
    oldest = (OLDEST_VERSION, None)
    known = [f for f in fields(cls) if _FIELD_SINCE.get((cls, f.name), oldest)[0] <= version]
    names = [f.name for f in known]
    missing = {name: usual for (of, name), (_, usual) in _FIELD_SINCE.items() if of is cls and name not in names}
    get = attrgetter(*names)
    return _MessageForm(
        number,
        tuple(_FIELD_TYPES[str(f.type)] for f in known),
        tuple(_HIGHEST.get(name, OFFSET_MAX) for name in names),
        get if len(names) > 1 else (lambda message: (get(message),)),
        partial(_completed, cls, names, missing) if missing else cls,
    )


def _completed(cls: type[Any], names: list[str], missing: Mapping[str, Any], *values: Any) -> Any:
    return cls(**missing, **dict(zip(names, values, strict=True)))


#: By version and type.
_FORMS: Final = {
    version: {
        cls: _form(number, cls, version)
        for number, cls in _TYPES.items()
        if _TYPE_SINCE.get(cls, OLDEST_VERSION) <= version
    }
    for version in range(OLDEST_VERSION, NEWEST_VERSION + 1)
}
#: By version and number.
_NUMBERED: Final = {version: {form.number: form for form in forms.values()} for version, forms in _FORMS.items()}


@overload
def encode(message: Message) -> bytes: ...
@overload
def encode(message: Message, version: int) -> bytes | None: ...
def encode(message: Message, version: int = NEWEST_VERSION) -> bytes | None:
    """The bytes of a message in a version; None: that version has no such message."""
    form = _FORMS[version].get(type(message))
    if form is None:
        return None
    packed: bytes = msgpack.packb((form.number, *form.values(message)))
    return packed


def decode(payload: Buffer, version: int = NEWEST_VERSION) -> Message:
    """The message in ``payload``, checked for type and range of every field.

    Raises:
        ProtocolError: the bytes are no message of this version.
    """
    try:
        # A frame has room for millions of parts; no message has more than a few, and none of them is a map. What says
        # that it is longer is refused before it is made.
        number, *values = msgpack.unpackb(payload, use_list=False, max_array_len=_PAIRS_MAX, max_map_len=0)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"{len(payload)} bytes are no message: {error}") from error
    form = _NUMBERED[version].get(number) if type(number) is int else None
    if form is None:
        named = number if type(number) is int else f"of type {type(number).__name__}"
        raise ProtocolError(f"message type {named} is not in the list of version {version}")
    spec = form.types
    if len(spec) != len(values):
        raise ProtocolError(f"message type {number} has {len(values)} fields, not {len(spec)}")
    if tuple(map(type, values)) != spec:
        found, wanted = next((type(v), t) for v, t in zip(values, spec, strict=True) if type(v) is not t)
        raise ProtocolError(f"message type {number}: {found.__name__} where {wanted.__name__} is due")
    for value, highest in zip(values, form.highest, strict=True):
        if type(value) is int:
            if not 0 <= value <= highest:
                raise ProtocolError(f"message type {number}: {value} is out of range: {highest} is the most")
        elif type(value) is tuple:
            _check_pairs(number, value)
    message: Message = form.make(*values)
    rule = _RULES.get(type(message))
    if rule is not None and not rule[1](message):
        raise ProtocolError(f"{type(message).__name__} of epoch {message.epoch}: {rule[0]}")
    return message


def _check_pairs(number: int, pairs: tuple[Any, ...]) -> None:
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2 or not all(type(x) is int and 0 <= x <= OFFSET_MAX for x in pair):
            raise ProtocolError(f"message type {number}: a pair of numbers is due, not {_SHORT.repr(pair)}")
