"""A line is completed by what the cluster has: soon, in silence, and without a trace."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quorate.scripts.terminal.completing.answer import words_for
from quorate.scripts.terminal.places.environment import own_environment
from tests.integration.http_servers import frozen_server
from tests.integration.http_stage import stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context, written


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


async def answered(line: str, home: Path, **environment: str) -> list[str]:
    """The same words, once there are any: a machine with other work may take longer than anybody waits."""
    until = time.monotonic() + 60
    while not (words := (await completed(line, home, **environment))[0]) and time.monotonic() < until:
        pass
    return words


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever completes a line in this process waits for an answer, and nothing else says which cluster is asked."""
    monkeypatch.setattr("quorate.scripts.terminal.completing.questions.ASK_S", 20.0)
    for name in [name for name in os.environ if name.startswith("QUORATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


async def words_with(line: str, **environment: str) -> list[str]:
    """The words for a line, with these variables in the environment of this process."""
    with own_environment():
        os.environ.update(environment)
        return await asyncio.to_thread(words_for, line)


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
        assert {line: await answered(line, tmp_path) for line in asked} == asked
        assert s.quorum.committed == end


@pytest.mark.usefixtures("patience")
async def test_cluster_that_wants_tls_and_a_secret_is_asked_with_them(tmp_path: Path) -> None:
    """And with nothing of the environment that is for another cluster than the one that the line names."""
    ours = authority()
    tls = SpokenTls(lambda: server_context(issued(ours, "127.0.0.1")), lambda: client_context([ours]))
    paths, secret, contexts = written(tmp_path, issued(ours), ours), tmp_path / "secret", tmp_path / "quorate"
    secret.write_bytes(b"s" * 32)
    contexts.mkdir(mode=0o700)
    for file in (secret, contexts / "contexts.json"):
        file.touch(mode=0o600)
        file.chmod(0o600)
    async with stage(2, tls=tls, shared_secret=b"s" * 32) as s:
        kept = {
            "name": "prod",
            "controllers": s.urls[1],
            "ca_files": str(paths.ca_files[0]),
            "secret_file": str(secret),
        }
        bare = {"name": "bare", "controllers": s.urls[1], "ca_files": str(paths.ca_files[0])}
        (contexts / "contexts.json").write_text(json.dumps({"contexts": [kept, bare]}))
        voters = ["1", "2"]
        named = {"QUORATE_CONTROLLERS": ",".join(s.urls), "QUORATE_CA_FILE": str(paths.ca_files[0])}
        shown = {"QUORATE_SHARED_SECRET_FILE": str(secret)}
        line = "quorate can-stop controller "
        assert await words_with(line, **named, **shown) == voters
        assert await words_with(line, **named) == []
        assert await words_with(line, QUORATE_CONTROLLERS=s.urls[1], **shown) == []
        assert await words_with("quorate can-stop controller --context prod ") == voters
        assert await words_with("quorate can-stop controller --context bare ", **shown) == []


@pytest.mark.usefixtures("patience")
async def test_controller_that_does_not_answer_does_not_keep_the_others_from_it() -> None:
    async with frozen_server() as frozen, stage(1) as s:
        await s.register(1, 11, None)
        urls = ",".join((frozen, "127.0.0.1:1", s.urls[0]))
        assert await words_with("quorate brokers describe ", QUORATE_CONTROLLERS=urls) == ["11"]


#: What is there when the process ends.
_LOOK = """
import json, os, sys
end = os._exit
def told(code):
    print(json.dumps(sorted(sys.modules)), flush=True)
    end(code)
os._exit = told
from quorate.scripts.cli.__main__ import main
main()
"""


@pytest.mark.parametrize("is_asked", [False, True])
async def test_completing_imports_no_library_that_takes_long(tmp_path: Path, *, is_asked: bool) -> None:
    """It takes most of the time that somebody waits who presses a key."""
    heavy = {"aiohttp", "asyncio", "typer", "click", "rich", "numpy", "structlog", "msgpack"}
    async with stage(1) as s:
        await s.register(1, 11, None)
        line = "quorate brokers describe " + ("" if is_asked else "--js")
        environment = {**os.environ, "QUORATE_COMPLETE_LINE": line, "QUORATE_CONTROLLERS": s.urls[0]}
        started = [sys.executable, "-c", _LOOK]
        words, modules = list[str](), ""
        until = time.monotonic() + 60
        while not words and time.monotonic() < until:
            done = await asyncio.to_thread(
                subprocess.run, started, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
            )
            *words, modules = done.stdout.splitlines()
    assert words == (["11"] if is_asked else ["--json"])
    assert set(json.loads(modules)) & (heavy if is_asked else heavy | {"pydantic", "ssl", "http.client"}) == set()


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
