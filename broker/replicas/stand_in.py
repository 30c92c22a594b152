"""Takes the place of data in a rehearsal: the size of logs, their growth, and the speed of a replica's copying.

Every partition is taken to hold ``partition_bytes`` and to be written at ``write_bytes_per_s``, the oldest being
dropped as new ones come. Positions count bytes from a moment that all processes share (1970), so that a position
means the same to the next leader; clocks that differ by a second differ by a second's writes, and a follower that is
ahead of its new leader is cut, as a log would be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StandInLog:
    """The log of any partition."""

    partition_bytes: int
    write_bytes_per_s: int

    def start(self, wall_ms: float) -> int:
        """Position of the oldest byte that is kept."""
        return int(self.write_bytes_per_s * wall_ms / 1000)

    def end(self, wall_ms: float) -> int:
        """Position behind the newest byte."""
        return self.start(wall_ms) + self.partition_bytes

    def behind_ms(self, missing: int) -> float:
        """The time since the log ended where a replica is that lacks so many bytes; infinite if it never did."""
        if missing <= 0:
            return 0.0
        return 1000.0 * missing / self.write_bytes_per_s if self.write_bytes_per_s else float("inf")


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace at which each replica of a process copies, on its own."""

    #: 0: no limit.
    copy_bytes_per_s: int = 0
    #: Nothing is copied and nothing said, as by a process whose disk hangs.
    is_stalled: bool = False

    def copied(self, elapsed_ms: float) -> float:
        """Bytes that a replica can have copied in some time; infinite without a limit."""
        return self.copy_bytes_per_s * elapsed_ms / 1000 if self.copy_bytes_per_s else float("inf")

    def needed_ms(self, missing: float) -> float:
        """The time that copying so many bytes takes."""
        return 1000.0 * missing / self.copy_bytes_per_s if self.copy_bytes_per_s else 0.0
