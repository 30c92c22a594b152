"""Commands as operators run them: each a process of its own, timed from its start to its end."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.terminal import exit_codes

#: Of our variables, which say which cluster is meant, and in whose name.
_OWN_PREFIX: Final = "QUORATE_"


class TimedCommand(NamedTuple):
    """One that has ended."""

    seconds: float
    #: What it wrote to standard output.
    output: str


async def timed_command(
    *words: str,
    environment: Mapping[str, str] | None = None,
    codes: Collection[int] = (exit_codes.DONE,),
) -> TimedCommand:
    """Run ``quorate`` with these words, in the environment of this process without what there is of our variables.

    Args:
        environment: further variables.
        codes: the exit codes that it may end with.

    Raises:
        QuorateError: it ended with another code.
    """
    command = (sys.executable, "-P", "-m", "quorate.scripts.cli", *words)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_PREFIX)}
    variables.update(environment or {})
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    try:
        output, complaint = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    elapsed = time.perf_counter() - start
    if process.returncode not in codes:
        raise QuorateError(f"quorate {' '.join(words)} ended with {process.returncode}: {complaint.decode()}")
    return TimedCommand(elapsed, output.decode())
