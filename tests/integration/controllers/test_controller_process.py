"""Controller processes: what they say when they cannot start, how they end, what stays when one is left."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.client.client import ControllerClient
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.survey import survey
from tests.waiting import eventually

READY_S = 60.0
STOP_S = 30.0


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[LocalCluster]:
    """Three controllers and no brokers, made and not started."""
    made = LocalCluster(directory, make_fresh(directory, Ports.of(free_ports(6)), 3, 0))
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()
            await process.wait(STOP_S)
        await made.client.close()
        print(logs(directory))


def logs(directory: Path) -> str:
    """What a failing test needs to be understood."""
    return "\n".join(f"== {p.name}\n{p.read_text(encoding='utf-8')[-3000:]}" for p in directory.glob("logs/*.log"))


async def run_controller(*arguments: str) -> tuple[int, str]:
    """Exit code and last words of a controller process that ends by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "quorate.scripts.cli",
        "controller",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(STOP_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    assert out == b""
    return process.returncode, err.decode()


async def test_controllers_stop_in_order_start_again_and_say_when_one_is_left(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        await c.start()
        before = await c.wait_for_controllers(READY_S)
        assert before.verdict == "healthy"
        first = await registrations(c)
        codes = [await process.stop(STOP_S) for process in c.controllers.values()]
        assert codes == [exit_codes.DONE] * 3, "SIGTERM is an orderly end"
        segment = cut_short(tmp_path / "controller-3")

        await c.start()
        after = await c.wait_for_controllers(READY_S)
        assert after.cluster_id == before.cluster_id
        assert after.quorum.epoch > before.quorum.epoch
        assert after.quorum.high_watermark > before.quorum.high_watermark
        await c.until(lambda: renewed(c, first), "all three have registered as new processes", READY_S)
        assert lines_of(tmp_path / "logs" / "controller-3.log", "log.set_aside", segment.name) == 1
        assert lines_of(tmp_path / "logs" / "controller-2.log", "log.set_aside") == 0

        active = after.quorum.active_id
        assert active is not None
        left = next(id_ for id_ in c.controllers if id_ != active)
        for id_, process in c.controllers.items():
            if id_ != left:
                process.kill()
        await eventually(lambda: sees_no_quorum(c), "one of three is left", READY_S)


def cut_short(directory: Path) -> Path:
    """The newest segment of a metadata directory, without its last bytes."""
    segment = max(directory.glob("__cluster_metadata-0/*.log"))
    os.truncate(segment, segment.stat().st_size - 20)
    return segment


def lines_of(log: Path, *words: str) -> int:
    """How many lines of a process's log have all of the words."""
    return sum(all(word in line for word in words) for line in log.read_text(encoding="utf-8").splitlines())


async def registrations(c: LocalCluster) -> dict[int, bytes]:
    """Incarnation by controller, once all have one."""

    async def all_of_them() -> dict[int, bytes] | None:
        known = {one.id: one.incarnation_id for one in (await c.client.describe_controllers()).controllers}
        registered = {id_: incarnation for id_, incarnation in known.items() if incarnation is not None}
        return registered if len(registered) == 3 else None

    return await c.until(all_of_them, "all three have registered", READY_S)


async def renewed(c: LocalCluster, before: dict[int, bytes]) -> bool | None:
    now = await registrations(c)
    return all(now[id_] != incarnation for id_, incarnation in before.items()) or None


async def sees_no_quorum(c: LocalCluster) -> bool:
    async with ControllerClient(c.plan.controller_urls) as client:
        seen = await survey(client, c.plan.controller_urls)
    said = [reason.message for reason in seen.reasons[:1]]
    return (seen.verdict, said) == ("no-quorum", ["no quorum: 1 of 3 reachable"])


async def test_controller_of_a_lost_quorum_still_answers_what_it_knows(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        first, *others = c.controllers.values()
        await first.start()

        async def own_view() -> StatusReply | None:
            status = await c.client.status()
            return status if status.quorum.active_id is None else None

        status = await c.until(own_view, "the only controller answers", READY_S)
        assert (status.verdict, status.quorum.epoch >= 0) == ("no-quorum", True)
        assert all(not process.is_running for process in others)


async def test_controller_that_cannot_start_says_why_in_one_sentence(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        good = tmp_path / f"controller-{c.plan.controllers[0].id}.toml"
        other = tmp_path / f"controller-{c.plan.controllers[1].id}"
        taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", c.plan.controllers[0].http_port)
        try:
            cases = {
                "settings that are missing": (("--set", "node_id=1"), "directory: must be set"),
                "file that is not there": (("--config", str(tmp_path / "none.toml")), "cannot be read"),
                "directory that is not formatted": (
                    ("--config", str(good), "--set", f"directory={tmp_path / 'none'}"),
                    "quorate recover rejoin",
                ),
                "directory of another node": (
                    ("--config", str(good), "--set", f"directory={other}"),
                    "belongs to node",
                ),
                "port that is taken": (("--config", str(good)), "address already in use"),
            }
            for name, (arguments, says) in cases.items():
                code, err = await run_controller(*arguments)
                assert code == exit_codes.REFUSED, (name, err)
                last = err.splitlines()[-1]
                assert last.startswith("quorate: "), (name, err)
                assert says in last, (name, err)
                assert "Traceback" not in err, (name, err)
        finally:
            taken.close()
            await taken.wait_closed()
