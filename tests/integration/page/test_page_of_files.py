"""`quorate page --from`: the page of files on loopback, and only its reads, until Ctrl-C."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import aiohttp
import pytest

from quorate.controller.http.page.shell import CONTENT_POLICY
from quorate.scripts.terminal import exit_codes
from tests.pipeline_logs import KAFKA

LOG = KAFKA / "static" / "m2" / "log"


async def page_of(path: Path, *words: str) -> asyncio.subprocess.Process:
    line = (sys.executable, "-m", "quorate.scripts.cli", "page", "--from", str(path), *words)
    return await asyncio.create_subprocess_exec(*line, stdout=PIPE, stderr=PIPE)


async def test_files_have_the_page_with_its_past_and_nothing_that_writes() -> None:
    process = await page_of(LOG)
    assert process.stdout is not None
    said = (await process.stdout.readline()).decode()
    found = re.search(r"http://127\.0\.0\.1:\d+", said)
    assert found, said
    async with aiohttp.ClientSession(found[0]) as session:
        async with session.get("/") as answer:
            assert (answer.status, answer.headers["Content-Security-Policy"]) == (200, CONTENT_POLICY)
        async with session.get("/v1/status", params={"at": "2026-11-21T00:15:00Z"}) as answer:
            status = await answer.json()
            assert (status["verdict"], status["quorum"]["is_past"], status["quorum"]["active_id"]) == (
                "critical",
                True,
                1,
            )
        async with session.get("/v1/answers/timeline") as answer:
            told = await answer.json()
            assert (told["now_ms"], told["earlier"]) == (None, None)
            assert {span["node"] for span in told["spans"] if span["lane"] == "broker"} >= {13, 14}
        async with session.delete("/v1/brokers/13") as answer:
            assert answer.status == 405
        async with session.get("/v1/metadata/batches", params={"offset": "0"}) as answer:
            assert answer.status == 404
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, out, err) == (exit_codes.DONE, b"", b"")


@pytest.mark.parametrize("words", [[], ["--port", "70000"]])
async def test_page_of_nothing_is_refused_before_anything_listens(tmp_path: Path, words: list[str]) -> None:
    process = await page_of(tmp_path / "none", *words)
    out, err = await process.communicate()
    assert (process.returncode != exit_codes.DONE, out) == (True, b"")
    assert err.strip()
    assert b"Traceback" not in err
