"""`quorate up` (`scripts/up`): a cluster on this machine, or a twin of a real one, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.live import Live

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli.clusters.up_cluster import BASE_PORT, BROKERS, CONTROLLERS, WantedCluster, find_or_make
from quorate.scripts.cli.status_screen import doubtful_elections, render
from quorate.scripts.cluster.lending import Lender
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.supervision import Supervisor
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import files_not_address
from quorate.scripts.terminal.places.controllers import LOCAL_DIRECTORY
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.line import ProgressLine, telling
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.terminal.survey import survey
from quorate.scripts.tour.tour import run_tour

_READY_S: Final = 60.0
_LOOK_S: Final = 1.0
#: Processes named in a line.
_NAMED_MAX: Final = 3


Directory = Annotated[Path, typer.Option("--dir", help="Where the cluster's state lies.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over: throws away what is in the directory.")]
Source = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="PATH",
        help="Make a twin: start from the metadata of a real cluster (a Kafka 3.3-4.3 or Quorate directory, "
        "or a checkpoint). The source is only read.",
        callback=files_not_address,
        show_default=False,
    ),
]
Brokers = Annotated[
    str | None,
    typer.Option(
        metavar="N|live|all|none",
        help=f"How many brokers a new cluster has (default {BROKERS}), or which brokers of a twin are played: those "
        "that were alive (default), all, or none, which freezes their sessions.",
        show_default=False,
    ),
]
ControllerCount = Annotated[
    int | None,
    typer.Option(min=1, max=5, help=f"Controllers of a new cluster (default {CONTROLLERS}).", show_default=False),
]
BasePort = Annotated[
    int | None,
    typer.Option(
        min=1024,
        max=65_000,
        envvar="QUORATE_BASE_PORT",
        show_envvar=True,
        help=f"First of the loopback ports of a new cluster (default {BASE_PORT}); a cluster that is there moves.",
        show_default=False,
    ),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Start processes again that end by themselves, after growing waits.")
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="A new cluster without TLS and permissions: every program on this machine may do everything."
    ),
]
Demo = Annotated[bool, typer.Option("--demo", help="A scripted tour on a captured Kafka cluster; then exit.")]


def up(
    directory: Directory = LOCAL_DIRECTORY,
    fresh: Fresh = False,
    source: Source = None,
    brokers: Brokers = None,
    controllers: ControllerCount = None,
    base_port: BasePort = None,
    restart: Restart = False,
    insecure: Insecure = False,
    demo: Demo = False,
) -> None:
    """Start controllers and brokers on loopback, show the live status, and stop them in order at Ctrl-C.

    A new cluster makes itself certificates, in DIR/certificates: it speaks TLS on every port, and lets in whom it knows
    by them. Commands on this machine find them by themselves, and ask as its administrator.

    Started again on the same directory, the cluster goes on where it was. A process that ends on its own is
    named, and the others go on as long as a majority of the controllers is left. `quorate node` kills, freezes and
    starts single processes.

    Exit code 0: stopped by Ctrl-C, in order, or before anything was there; 1: refused, or it could not go on; 130: by
    a second Ctrl-C, at once.

    Examples:

      scripts/up

      scripts/up --from tests/data/kafka/static/m2/log --brokers all --dir var-twin

      scripts/up --demo
    """
    wanted = WantedCluster(directory, fresh, source, brokers, controllers, base_port, insecure)
    if not demo:
        raise typer.Exit(_make_and_run(wanted, restarts=restart))
    if restart or wanted != WantedCluster(LOCAL_DIRECTORY):
        raise typer.BadParameter(
            "the tour makes a cluster of its own: no other option goes with it", param_hint="--demo"
        )
    raise typer.Exit(run_tour(Screen()))


class _Voice:
    """Sentences on standard error; above the live status, or the line about what is waited for, while that is shown."""

    def __init__(self) -> None:
        self.screen: Live | None = None
        self._line: ProgressLine | None = None

    @contextmanager
    def waiting(self, words: Callable[[float], str]) -> Iterator[None]:
        """While the block lasts, tell how far it is: see ``telling``."""
        with telling(words) as self._line:
            try:
                yield
            finally:
                self._line = None

    def say(self, sentence: str) -> None:
        """A sentence."""
        if self._line is not None:
            self._line.say(sentence)
        elif self.screen is None:
            sys.stderr.write(f"quorate: {sentence}\n")
            sys.stderr.flush()
        else:
            self.screen.console.print(f"quorate: {sentence}", markup=False, highlight=False, soft_wrap=True)


def _make_and_run(wanted: WantedCluster, *, restarts: bool) -> int:
    voice = _Voice()
    try:
        # Before the loop runs, which would not hear of Ctrl-C until all is made.
        plan = find_or_make(wanted, voice.say)
        return asyncio.run(_run(plan, wanted, voice, restarts=restarts))
    except KeyboardInterrupt:
        voice.say("stopped before anything was started")
        return exit_codes.DONE


async def _run(plan: ClusterPlan, wanted: WantedCluster, voice: _Voice, *, restarts: bool) -> int:
    cluster = LocalCluster(wanted.directory, plan, tell_lost=voice.say, restarts=restarts)
    lender = Lender(cluster, voice.say)
    supervisor = Supervisor(cluster, voice.say, lambda: lender.is_lent)
    stopped, hurried = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (hurried if stopped.is_set() else stopped).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        async with lender.open():
            voice.say(f"starting {len(cluster.controllers)} controllers and {len(cluster.brokers)} broker processes")
            await cluster.start()
            await _or_stopped(stopped, supervisor.run(), _stage(cluster, voice))
    finally:
        await _stop(cluster, hurried, voice)
    return exit_codes.INTERRUPTED if hurried.is_set() else exit_codes.DONE


async def _stop(cluster: LocalCluster, hurried: asyncio.Event, voice: _Voice) -> None:
    voice.say("stopping; Ctrl-C again kills what is left")
    begun_with = sum(process.is_running for process in cluster.processes)
    with voice.waiting(lambda seconds: _stop_words(cluster, begun_with, seconds)):
        async with asyncio.TaskGroup() as group:
            hurrying = group.create_task(_kill_when(hurried, cluster))
            await cluster.stop()
            hurrying.cancel()


def _stop_words(cluster: LocalCluster, begun_with: int, seconds: float) -> str:
    left = [process.name for process in cluster.processes if process.is_running]
    ended = f"stopping, {duration(seconds)}: {begun_with - len(left)} of {begun_with} processes ended"
    return f"{ended}; waiting for {_some(left)}" if left else ended


async def _kill_when(hurried: asyncio.Event, cluster: LocalCluster) -> None:
    await hurried.wait()
    cluster.kill()


async def _stage(cluster: LocalCluster, voice: _Voice) -> None:
    """Wait until all is ready, say so, and show the live status for as long as it is looked at."""
    await _ready(cluster, voice)
    if not sys.stdout.isatty():
        await asyncio.Event().wait()
    with Live(console=Screen(), auto_refresh=False, transient=True) as screen:
        voice.screen = screen
        try:
            while True:
                screen.update(render(await survey(cluster.client, cluster.plan.controller_urls)), refresh=True)
                await asyncio.sleep(_LOOK_S)
        finally:
            voice.screen = None


async def _ready(cluster: LocalCluster, voice: _Voice) -> None:
    with voice.waiting(lambda seconds: _start_words(cluster, seconds)):
        await cluster.wait_for_controllers(_READY_S)
        status = await cluster.wait_for_brokers(_READY_S)
    for sentence in doubtful_elections(status.elections):
        voice.say(sentence)
    voice.say(_ready_sentence(cluster))
    if not cluster.plan.is_secured:
        voice.say("it is insecure: without TLS and permissions every program on this machine may do everything")


def _start_words(cluster: LocalCluster, seconds: float) -> str:
    """The part of the cluster that is there already, and who is waited for."""
    voters = () if cluster.seen is None else cluster.seen.quorum.voters
    brokers = () if cluster.seen is None else cluster.seen.brokers
    following = {voter.node_id for voter in voters if voter.role in ("active", "standby")}
    active = {broker.id for broker in brokers if broker.state == "active"}
    controllers, played = cluster.awaited.controllers.keys(), cluster.awaited.broker_ids
    missing = [f"controller {node}" for node in sorted(controllers - following)]
    missing += [f"broker {node}" for node in sorted(played - active)]
    there = f"{len(controllers & following)} of {len(controllers)} controllers"
    there += f", {len(played & active)} of {len(played)} brokers"
    waiting = f"; waiting for {_some(missing)}" if missing else ""
    return f"starting, {duration(seconds)}: {there}{waiting}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def _ready_sentence(cluster: LocalCluster) -> str:
    missing = cluster.members.controllers.keys() - cluster.awaited.controllers.keys()
    without = f" without controller{'s' * (len(missing) > 1)} {', '.join(map(str, sorted(missing)))}" if missing else ""
    urls = " ".join(cluster.plan.controller_urls)
    return f"ready{without}: {urls}; logs in {cluster.directory / 'logs'}; Ctrl-C stops it"


async def _or_stopped(stopped: asyncio.Event, *works: Coroutine[Any, Any, None]) -> None:
    """Do the works, until one of them ends, or we are told to stop."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(work) for work in (*works, _until(stopped))}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        # Not `except*`: what is raised in there is wrapped in a group once more.
        ours = failed.subgroup(QuorateError)
        if ours is None:
            raise
        raise ours.exceptions[0] from None


async def _until(event: asyncio.Event) -> None:
    await event.wait()
