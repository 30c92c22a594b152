"""Frames whose bytes are others when they arrive, in ways that whoever reads them can tell.

What decodes as another message is none of them: that would be a lie of the peer, and nodes trust their peers. A length
that is too high, and allowed, is told by time alone (``stretched``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Final

from quorate.metadata_log.batches.batch import LOG_OVERHEAD_BYTES
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages.messages import Append, ChunkMessage
from quorate.quorum.messages.wire import decode
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, framed

_LENGTH: Final = struct.Struct(">I")
#: A batch's leader epoch, which no checksum covers.
_EPOCH: Final = range(LOG_OVERHEAD_BYTES, LOG_OVERHEAD_BYTES + 4)
#: Bytes tried until one is found without which the frame is no message.
_TRIES: Final = 20


class DamagedFrame(bytes):
    """A frame as it arrives, its length included."""

    #: Whether it is no message any more. Otherwise what the message carries is damaged, under a checksum.
    is_nonsense: bool


def damaged(rng: Random, payload: bytes) -> DamagedFrame:
    """The frame that arrives in place of the message ``payload``."""
    makers: tuple[Callable[[Random, bytes], DamagedFrame | None], ...] = (
        _too_long,
        _too_short,
        _flipped,
        _noise,
        _rotten,
    )
    return rng.choice(makers)(rng, payload) or _too_long(rng, payload)


def stretched() -> DamagedFrame:
    """A frame that announces the most there may be, and holds little: its reader waits for so many bytes."""
    return _frame(_LENGTH.pack(FRAME_BYTES_MAX) + b"little", is_nonsense=False)


def _frame(data: bytes, *, is_nonsense: bool) -> DamagedFrame:
    frame = DamagedFrame(data)
    frame.is_nonsense = is_nonsense
    return frame


def _too_long(rng: Random, payload: bytes) -> DamagedFrame:
    """It announces more than a frame may hold."""
    return _frame(_LENGTH.pack(rng.randrange(FRAME_BYTES_MAX + 1, 1 << 32)) + payload, is_nonsense=True)


def _too_short(rng: Random, payload: bytes) -> DamagedFrame | None:
    """It announces less than it holds; what is left over reads like the next frame."""
    size = rng.randrange(1, len(payload))
    return _frame(_LENGTH.pack(size) + payload, is_nonsense=True) if _is_nonsense(payload[:size]) else None


def _flipped(rng: Random, payload: bytes) -> DamagedFrame | None:
    """One of its bytes is another, with which it is no message."""
    for _ in range(_TRIES):
        changed = bytearray(payload)
        changed[rng.randrange(min(len(payload), _TRIES))] ^= 1 << rng.randrange(8)
        if _is_nonsense(changed):
            return _frame(framed(bytes(changed)), is_nonsense=True)
    return None


def _noise(rng: Random, payload: bytes) -> DamagedFrame | None:
    noise = rng.randbytes(len(payload))
    return _frame(framed(noise), is_nonsense=True) if _is_nonsense(noise) else None


def _rotten(rng: Random, payload: bytes) -> DamagedFrame | None:
    """A sound message around a batch, or a piece of a checkpoint, that is not what was sent."""
    message = decode(payload)
    carried = (
        message.batches if isinstance(message, Append) else message.data if isinstance(message, ChunkMessage) else b""
    )
    if not carried:
        return None
    # Of the first batch: of any other it is not known here where its epoch lies.
    position = rng.randrange(min(len(carried), LOG_OVERHEAD_BYTES + int.from_bytes(carried[8:LOG_OVERHEAD_BYTES])))
    if position in _EPOCH:
        return None
    changed = bytearray(payload)
    changed[payload.rindex(carried) + position] ^= 1 << rng.randrange(8)
    return _frame(framed(bytes(changed)), is_nonsense=False)


def _is_nonsense(payload: bytes | bytearray) -> bool:
    try:
        decode(bytes(payload))
    except ProtocolError:
        return True
    return False


_MAKERS: Final[tuple[Callable[[Random, bytes], DamagedFrame | None], ...]] = (
    _too_long,
    _too_short,
    _flipped,
    _noise,
    _rotten,
)
