"""A process's side of one connection to a peer: production's reader of frames, and its signs of life."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.quorum.transport.frames import FRAME_BYTES_MAX, FrameReader
from quorate.quorum.transport.silence import Pulse


def _frame_reader() -> FrameReader:
    """That of a connection whose handshake is through."""
    reader = FrameReader()
    reader.bytes_max = FRAME_BYTES_MAX
    return reader


@dataclass(slots=True)
class SimulatedLink:
    """A connection that the process has noticed."""

    number: int
    peer: int
    frames: FrameReader = field(default_factory=_frame_reader)
    #: See ``quorum.transport.silence``.
    pulse: Pulse = field(default_factory=Pulse)
