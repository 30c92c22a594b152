"""``commands``: what operators wait for when they ask, each a command line from its process's start to its end."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.scripts.benchmarks.command_lines import timed_command
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import MeasuredCluster, Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.captures import STATIC_M2
from quorate.scripts.generated_history.making import RECORDS_MIN, GenerationPlan, make_history
from quorate.scripts.logins.cluster_variables import CONTROLLERS_VARIABLE
from quorate.scripts.logins.private_state import STATE_VARIABLE
from quorate.scripts.terminal.output import format_time
from quorate.snapshots.checkpoints.loading import batches_behind

#: Some 100 MB of a generated history.
_RECORDS: Final = 2_050_000
#: Of the log, between two checkpoints: controllers write one after 20 MiB.
_CHECKPOINT_SHARE: Final = 0.21
_DAYS: Final = 1
_SINCE_MS: Final = 10 * 60_000
_PARTITIONS: Final = 1_000
_PARTITIONS_MIN: Final = 100
_MB: Final = 1e6

_TYPED: Final = "quorate topics describe or"
_OFFERED: Final = ("orders", "orders-archive")
_LINE_VARIABLE: Final = "QUORATE_COMPLETE_LINE"
#: How often somebody presses the key again where no names came: who does not answer at once is not waited for.
_PRESSES_MAX: Final = 50

_FROM_FILES: Final = FigureTarget(2.0)
_COMPLETION: Final = FigureTarget(0.3)
_ASKED: Final = FigureTarget(1.0)


_Ask = Callable[[], Awaitable[float]]


class _Question(NamedTuple):
    """One of the command lines."""

    name: str
    #: Seconds that it takes, once.
    ask: _Ask
    targets: tuple[FigureTarget, ...] = ()


class _Logs(NamedTuple):
    """A generated log in files, twice."""

    with_checkpoints: Path
    without: Path
    #: Ten minutes before its end.
    since: str
    records: int
    bytes: int
    partitions: int
    #: Of the log behind the newest checkpoint.
    bytes_behind: int


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Each of them once a run, in turn."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    workspace.say("commands: making a log")
    logs = _made_logs(workspace)
    figures = await _measured(workspace, "of files", _of_files(workspace, logs))
    count = workspace.scaled(_PARTITIONS, _PARTITIONS_MIN)
    async with running_cluster(workspace, count) as cluster, Watch(cluster) as watch:
        await watch.active()
        await _create_topics(cluster)
        figures += await _measured(workspace, "of a cluster", _of_cluster(workspace, cluster))
    return BenchmarkOutcome(
        "each a process from its start to its end, one after the other, in turn. incidents and timeline: files of "
        "Apache Kafka's own, captured when two of its four brokers had crashed, 10,996 records of 3,061 partitions. "
        f"history: files of scripts/generate-history, {logs.records:,} records, {logs.bytes / _MB:,.1f} MB, "
        f"{logs.partitions:,} partitions, of its last ten minutes; a checkpoint after every 20 MiB, as controllers "
        f"write them where no hour has less, {logs.bytes_behind / _MB:,.1f} MB of log behind the newest. The others "
        f"ask 3 controllers, {brokers_sentence()}, {count:,} partitions, which run beside them on the same cores; "
        f"completion is asked for as shells do, of a line that ends with {_TYPED.rpartition(' ')[2]!r}, until names "
        "come",
        figures,
    )


async def _measured(workspace: Workspace, which: str, questions: Sequence[_Question]) -> tuple[Figure, ...]:
    """All of them in turn, once a run."""
    taken: list[list[float]] = [[] for _ in questions]
    for number in range(workspace.runs):
        for question, samples in zip(questions, taken, strict=True):
            samples.append(await question.ask())
        workspace.say(f"commands: {which}, {number + 1} of {workspace.runs}")
    return tuple(
        Figure(question.name, "s", tuple(samples), question.targets)
        for question, samples in zip(questions, taken, strict=True)
    )


def _of_files(workspace: Workspace, logs: _Logs) -> tuple[_Question, ...]:
    environment = _own_state(workspace)
    since = ("--since", logs.since)
    return (
        _Question("incidents", _command(environment, "incidents", "--from", str(STATIC_M2)), (_FROM_FILES,)),
        _Question("timeline", _command(environment, "timeline", "--from", str(STATIC_M2)), (_FROM_FILES,)),
        _Question(
            "history of 10 minutes, with checkpoints",
            _command(environment, "history", *since, "--from", str(logs.with_checkpoints)),
            (_FROM_FILES,),
        ),
        _Question(
            "history of 10 minutes, without",
            _command(environment, "history", *since, "--from", str(logs.without)),
        ),
        _Question("--version", _command(environment, "--version")),
    )


def _of_cluster(workspace: Workspace, cluster: MeasuredCluster) -> tuple[_Question, ...]:
    environment = {**_own_state(workspace), CONTROLLERS_VARIABLE: ",".join(cluster.plan.controller_urls)}
    return (
        _Question("status", _command(environment, "status"), (_ASKED,)),
        _Question("explain", _command(environment, "explain"), (_ASKED,)),
        _Question("completion of a topic's name", partial(_complete, environment), (_COMPLETION,)),
    )


def _own_state(workspace: Workspace) -> dict[str, str]:
    """The environment in which nothing is looked at that whoever measures keeps of clusters."""
    return {STATE_VARIABLE: str(workspace.directory / "state")}


def _command(environment: Mapping[str, str], *words: str) -> _Ask:
    async def ask() -> float:
        return (await timed_command(*words, environment=environment)).seconds

    return ask


async def _complete(environment: Mapping[str, str]) -> float:
    seconds, offered = 0.0, list[str]()
    for _ in range(_PRESSES_MAX):
        done = await timed_command(environment={**environment, _LINE_VARIABLE: _TYPED})
        seconds, offered = seconds + done.seconds, done.output.split()
        if offered == list(_OFFERED):
            return seconds
    raise QuorateError(f"{_TYPED!r} is completed by {offered} instead of {list(_OFFERED)}")


def _made_logs(workspace: Workspace) -> _Logs:
    records = workspace.scaled(_RECORDS, RECORDS_MIN)
    plan = GenerationPlan(records, seed=1, days=_DAYS, checkpoint_every=round(records * _CHECKPOINT_SHARE))
    whole, bare = workspace.directory / "log", workspace.directory / "log-without-checkpoints"
    made = make_history(plan, whole, lambda _: None)
    shutil.copytree(whole, bare, ignore=shutil.ignore_patterns("*-*.checkpoint", "*-*.manifest"))
    files = find_files(whole)
    newest = max(file.offset or 0 for file in files if file.is_checkpoint)
    segments = [file for file in files if not file.is_checkpoint]
    return _Logs(
        with_checkpoints=whole,
        without=bare,
        since=format_time(made.operations.log.clock_ms - _SINCE_MS),
        records=made.end_offset,
        bytes=sum(file.path.stat().st_size for file in segments),
        partitions=made.operations.pool.held_count,
        bytes_behind=sum(len(batch.data) for batch in batches_behind(segments, newest)),
    )


async def _create_topics(cluster: MeasuredCluster) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=3) for name in _OFFERED]
    reply = await cluster.client.create_topics(CreateTopicsRequest(topics=topics))
    failed = [topic for topic in reply.topics if topic.error_code is not ErrorCode.NONE]
    if failed:
        raise QuorateError(f"topic {failed[0].name} was not created: {failed[0].error_message}")
