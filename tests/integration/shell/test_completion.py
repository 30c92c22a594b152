"""A line is completed by what the cluster has: soon, in silence, and without a trace."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from tests.integration.http_servers import frozen_server
from tests.integration.http_stage import stage


async def completed(line: str, home: Path, **environment: str) -> tuple[list[str], float]:
    """The words for a line, by a process as a shell starts it, and the seconds that it took; it says nothing else."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
    variables |= {"QUORATE_COMPLETE_LINE": line, "XDG_STATE_HOME": str(home), **environment}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.scripts.cli"),
        env=variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    return out.decode().splitlines(), time.monotonic() - began


async def test_names_of_the_cluster_complete_a_line_and_nothing_is_written(tmp_path: Path) -> None:
    async with stage() as s:
        for broker_id in (11, 12):
            await s.register(1, broker_id, None)
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("orders", "orders-eu", "x")]
        status, _, _ = await s.ask(1, "POST", "/v1/topics", {"topics": topics})
        assert status == 200
        end = s.quorum.committed
        at = f"--controllers {s.urls[1].removeprefix('http://')}"
        asked = {
            f"quorate topics describe {at} or": ["orders", "orders-eu"],
            f"quorate can-stop controller {at} ": ["1", "2", "3"],
            f"quorate explain {at} broker 1": ["11", "12"],
            f"quorate partitions describe {at} orders-": ["orders-0", "orders-eu-0"],
        }
        found = await asyncio.gather(*(completed(line, tmp_path) for line in asked))
        assert [words for words, _ in found] == [*asked.values()]
        assert s.quorum.committed == end


async def test_silent_cluster_is_not_waited_for(tmp_path: Path) -> None:
    async with frozen_server() as frozen:
        _, usual = await completed("quorate topics describe --not", tmp_path)
        words, took = await completed("quorate topics describe or", tmp_path, QUORATE_CONTROLLERS=frozen)
    assert words == []
    assert took < usual + 3.0, "the rest is the start of a process, on a machine that has other work"


async def test_resolver_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, socket, time\n"
        "def asked(host, *more, **named):\n"
        "    pathlib.Path(__file__).with_name('asked').write_text(host)\n"
        "    time.sleep(60)\n"
        "socket.getaddrinfo = asked\n"
    )
    line = "quorate topics describe --controllers one.example:1,two.example:1 or"
    async with asyncio.timeout(30):
        words, _ = await completed(line, tmp_path, PYTHONPATH=str(tmp_path))
    assert words == []
    assert (tmp_path / "asked").read_text().endswith(".example"), "nobody asked the resolver"


@pytest.mark.parametrize("directory", ["none", "."])
async def test_directory_without_a_cluster_is_no_error(tmp_path: Path, directory: str) -> None:
    assert (await completed(f"quorate topics describe --dir {directory} or", tmp_path))[0] == []
