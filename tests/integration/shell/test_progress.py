"""Words about what takes long, of a command as a process: on a terminal soon, elsewhere rarely, never in its answer."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from tests.integration.http_servers import frozen_server
from tests.waiting import eventually

WORDS = b"\r\x1b[Kquorate: no answer yet from http://"


def seen_on(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except BlockingIOError:
        return b""


async def test_search_for_a_controller_is_told_of_on_a_terminal_soon_with_json_too(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    seen = b""

    async def is_told() -> bool:
        nonlocal seen
        seen += seen_on(ours)
        return seen.count(WORDS) >= 2

    async with frozen_server() as frozen:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quorate.scripts.cli", "topics", "list", "--json", "--controllers", frozen),
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        began = time.monotonic()
        try:
            await eventually(is_told, "it is told, and told again in the same place")
        finally:
            process.kill()
            out, _ = await process.communicate()
            os.close(ours)
    assert out == b""
    assert b"\n" not in seen
    assert time.monotonic() - began < 10
