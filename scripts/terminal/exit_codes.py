"""Exit codes of every command; they are API and documented in docs/operations.md."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
#: The request was refused, or what was checked does not hold.
REFUSED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
OUTCOME_UNKNOWN: Final = 4
#: Of `quorate status`: partitions have no leader; what is less is ``REFUSED``.
CRITICAL: Final = 5
#: A controller that a fault ended: it must not go on, and says why in one sentence (EX_SOFTWARE of sysexits.h).
FAULT: Final = 70
#: Ended by Ctrl-C (128 + SIGINT).
INTERRUPTED: Final = 130
