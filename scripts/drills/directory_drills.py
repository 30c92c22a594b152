"""Drills on what a controller finds in its directory: it may not write there, or the wrong files lie there."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, MetaProperties, encode_meta_properties
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.process import ProcessFailed
from quorate.scripts.drills.drill import VOTES_AGAIN, Drill, healthy_again, outage
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.machine_drills import faults
from quorate.scripts.drills.machine_faults import MachineFaults
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.lost_majority.directory_survey import survey_directory

#: Within which a controller must have refused to start.
_REFUSAL_S: Final = 20.0
#: Runs what follows where a directory, its first argument, is mounted read only for nobody else.
_READ_ONLY: Final = (
    "unshare",
    "-rm",
    "sh",
    "-c",
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
)

_STARTED: Final = Expectation(name="started_anyway", meaning="starts that should have been refused", at_most=0)


def no_read_only_mount() -> str:
    """The reason why no directory can be mounted read only for one process here; empty: it can."""
    command = [*_READ_ONLY, "/tmp", "true"]
    try:
        tried = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    except OSError as error:
        return f"a read-only mount is not possible here: unshare: {error.strerror}"
    said = (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]
    return f"a read-only mount is not possible here: {said}" if tried.returncode else ""


async def read_only_disk(environment: DrillEnvironment) -> None:
    """The active controller's disk turns read only, as file systems do that met an error; then it is started there."""
    node = await environment.active()
    environment.event("fault", f"controller {node}'s disk is read only")
    faults(environment, node, MachineFaults(is_read_only=True))
    code = await environment.process(node).wait(DEADLINE_S)
    environment.event(
        "seen", f"controller {node} ended with exit code {code}: {environment.process(node).last_words()}"
    )
    await environment.load.more()
    environment.event("fault", f"controller {node} is started, its directory mounted read only")
    await _start_read_only(environment, node)
    faults(environment, node, MachineFaults())
    started = await environment.restart(environment.controllers[node])
    await environment.settle(started)


async def _start_read_only(environment: DrillEnvironment, node: int) -> None:
    settings = environment.local.cluster.directory / f"controller-{node}.toml"
    command = (sys.executable, "-P", "-m", "quorate.scripts.cli", "controller", "--config", str(settings))
    process = await asyncio.create_subprocess_exec(
        *(*_READ_ONLY, str(environment.directory(node)), *command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_REFUSAL_S):
            _, said = await process.communicate()
        code = process.returncode
    except TimeoutError:
        code, said = None, b"it did not end"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    last_words = said.decode(errors="replace").strip().splitlines()[-1:]
    _note_refusal(environment, node, code, "".join(last_words))


async def doubled_segment(environment: DrillEnvironment) -> None:
    """A copy of a standby's newest segment lies beside it: first as if it were the next one, then in its middle."""
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    await _double(environment, node, "behind its end", lambda base, end: end)
    await environment.load.more()
    await environment.kill(environment.controllers[node])
    started = await _double(environment, node, "in its middle", lambda base, end: (base + end) // 2)
    await environment.load.more()
    await environment.settle(started)


async def _double(environment: DrillEnvironment, node: int, where: str, offset: Callable[[int, int], int]) -> float:
    """Put a copy of its newest segment at an offset, and start it until it votes; the moment of the start."""
    newest = environment.newest_segment(node)
    name = segment_name(offset(int(newest.stem), survey_directory(environment.directory(node)).end_offset))
    shutil.copyfile(newest, newest.with_name(name))
    environment.event("fault", f"{newest.name} of controller {node} is there once more, {where}: {name}")
    started = await environment.restart(environment.controllers[node])
    await environment.votes_again(node, started)
    aside = sorted(path.name for path in newest.parent.glob("*.damaged*"))
    environment.event("seen", f"set aside: {', '.join(aside) or 'nothing'}")
    return started


async def foreign_directory(environment: DrillEnvironment) -> None:
    """A standby is given another node's directory, then its own of another cluster: it must start with neither."""
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    own = environment.directory(node)
    aside = own.with_name(f"{own.name}.own")
    own.rename(aside)
    try:
        other = await environment.active()
        theirs = environment.directory(other)
        await _give(environment, node, f"a copy of controller {other}'s directory", lambda: copy_directory(theirs, own))
        await _give(
            environment, node, "its directory in another cluster", lambda: _copy_of_another_cluster(aside, own, node)
        )
        await environment.load.more()
    finally:
        environment.process(node).kill()
        shutil.rmtree(own, ignore_errors=True)
        aside.rename(own)
    environment.event("repair", f"controller {node} has its own directory again")
    started = await environment.restart(environment.controllers[node])
    await environment.votes_again(node, started)
    await environment.settle(started)


async def _give(environment: DrillEnvironment, node: int, what: str, put: Callable[[], None]) -> None:
    shutil.rmtree(environment.directory(node), ignore_errors=True)
    await asyncio.to_thread(put)
    environment.event("fault", f"controller {node} is started with {what}")
    process = environment.process(node)
    await process.start()
    try:
        code: int | None = await process.wait(_REFUSAL_S)
    except ProcessFailed:
        code = None
        await environment.control.kill([environment.controllers[node]])
    _note_refusal(environment, node, code, process.last_words())


def copy_directory(source: Path, target: Path) -> None:
    """Copy a metadata directory that a controller is running on."""
    # What is in the making or on its way out may be gone when its turn comes.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.part", "*.deleted"))


def _copy_of_another_cluster(source: Path, target: Path, node: int) -> None:
    """The same history under another cluster's name: what a twin's directory looks like."""
    shutil.copytree(source, target)
    meta = MetaProperties(new_id(), node, uuid.uuid4().bytes)
    (target / META_PROPERTIES_NAME).write_bytes(encode_meta_properties(meta))


def _note_refusal(environment: DrillEnvironment, node: int, code: int | None, said: str) -> None:
    """A start that must come to nothing: exit code 1, and a sentence. None: it went on running."""
    environment.event("seen", f"exit code {code}: {said}")
    has_started = code in (0, None)
    environment.measure("started_anyway", int(has_started))
    if not has_started and not (code == 1 and said.startswith("quorate: ")):
        raise DrillBroken(f"controller {node} ended with exit code {code}, and not with a sentence: {said}")


DRILLS: Final = (
    Drill(
        "read-only-disk",
        "the active controller's disk turns read only: it ends, another goes on; started there it says so and ends",
        (outage(3_000), _STARTED, healthy_again(20_000)),
        read_only_disk,
        "rigs",
        is_faulty=True,
        obstacle=no_read_only_mount,
    ),
    Drill(
        "doubled-segment",
        "a segment of a standby's log is there twice: it keeps to the log that was agreed, and votes again",
        (outage(1_000), VOTES_AGAIN, healthy_again(20_000)),
        doubled_segment,
        "destroys",
    ),
    Drill(
        "foreign-directory",
        "a standby is given the directory of another node, then of another cluster: it refuses to start, others go on",
        (outage(1_000), _STARTED, VOTES_AGAIN, healthy_again(20_000)),
        foreign_directory,
        "destroys",
    ),
)
