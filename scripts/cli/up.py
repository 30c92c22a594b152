"""`quorate up` (`scripts/up`): a cluster on this machine, or a twin of a real one, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live

from metadata_log.errors import QuorateError
from scripts.cli import exit_codes
from scripts.cli.connecting import LOCAL_DIRECTORY
from scripts.cli.status_screen import doubtful_elections, render
from scripts.cli.survey import survey
from scripts.cluster.lending import Lender
from scripts.cluster.local import LocalCluster
from scripts.cluster.making import Ports, make_fresh, make_twin, remove
from scripts.cluster.plan import ClusterError, ClusterPlan
from scripts.tour.tour import run_tour

_READY_S: Final = 60.0
_LOOK_S: Final = 1.0
_TWIN_CHOICES: Final = ("live", "all", "none")
_BROKERS_MAX: Final = 100
_DEFAULT_BROKERS: Final = 3


def up(
    directory: Annotated[Path, typer.Option("--dir", help="Where the cluster's state lies.")] = LOCAL_DIRECTORY,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: throws away what is in the directory.")] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Make a twin: start from the metadata of a real cluster (a Kafka 3.3-4.3 or Quorate directory, "
            "or a checkpoint). The source is only read.",
            show_default=False,
        ),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option(
            metavar="N|live|all|none",
            help="How many brokers a fresh cluster has (default 3), or which brokers of a twin are played: those that "
            "were alive (default), all, or none, which freezes their sessions.",
            show_default=False,
        ),
    ] = None,
    controllers: Annotated[int, typer.Option(min=1, max=5, help="Controllers of a fresh cluster.")] = 3,
    base_port: Annotated[
        int, typer.Option(min=1024, max=65_000, help="First of the loopback ports that a new cluster uses.")
    ] = 18_080,
    demo: Annotated[
        bool, typer.Option("--demo", help="A scripted tour on a captured Kafka cluster; then exit.")
    ] = False,
) -> None:
    """Start controllers and brokers on loopback, show the live status, and stop them in order at Ctrl-C.

    Started again on the same directory, the cluster goes on where it was.

    Examples:

      scripts/up

      scripts/up --from tests/data/kafka/static/m2/log --brokers all --dir var-twin

      scripts/up --demo
    """
    if demo:
        raise typer.Exit(run_tour(Console()))
    raise typer.Exit(asyncio.run(_up(directory, fresh, source, brokers, controllers, base_port)))


async def _up(
    directory: Path, fresh: bool, source: Path | None, brokers: str | None, controllers: int, base_port: int
) -> int:
    plan = _made(directory, fresh, source, brokers, controllers, base_port)
    cluster = LocalCluster(directory, plan, tell_lost=_say)
    cluster.require_ports()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        _say(f"starting {len(cluster.controllers)} controllers and {len(cluster.brokers)} broker processes")
        await cluster.start()
        await _or_stopped(_ready(cluster), stopped)
        if not stopped.is_set():
            lender = Lender(cluster, _say)
            async with lender.open():
                await _or_stopped(_watch(cluster, lender), stopped)
    finally:
        _say("stopping")
        await cluster.stop()
    return exit_codes.DONE


def _made(
    directory: Path, fresh: bool, source: Path | None, brokers: str | None, controllers: int, base_port: int
) -> ClusterPlan:
    """The cluster in the directory, made now if there is none."""
    known = ClusterPlan.load(directory) if not fresh else None
    if known is not None:
        if source is not None or brokers is not None:
            raise ClusterError(
                f"{directory} holds cluster {known.cluster_id} already, and --from and --brokers are for a new one: "
                "start over with --fresh, or use another --dir"
            )
        _say(f"cluster {known.cluster_id} in {directory} goes on")
        return known
    if fresh and directory.exists() and any(directory.iterdir()):
        _say(f"--fresh: throwing away what is in {directory}")
        remove(directory)
    ports = Ports.from_base(base_port)
    if source is None:
        plan = make_fresh(directory, ports, controllers, _broker_count(brokers))
        _say(f"formatted cluster {plan.cluster_id} in {directory}")
        return plan
    if brokers not in (None, *_TWIN_CHOICES):
        raise ClusterError(f"--brokers {brokers!r}: a twin plays {', '.join(_TWIN_CHOICES)}")
    _say(f"reading {source}")
    plan = make_twin(directory, source, ports, brokers or "live", lambda one: _say(str(one)))
    played = sum(len(group.ids) for group in plan.brokers)
    _say(f"made cluster {plan.cluster_id}, a twin of {plan.source_cluster_id}, with {played} of its brokers played")
    return plan


def _broker_count(text: str | None) -> int:
    if text is None:
        return _DEFAULT_BROKERS
    if text.isascii() and text.isdigit() and int(text) <= _BROKERS_MAX:
        return int(text)
    raise ClusterError(f"--brokers {text!r}: a fresh cluster has a number of brokers from 0 to {_BROKERS_MAX}")


async def _ready(cluster: LocalCluster) -> None:
    await cluster.wait_for_controllers(_READY_S)
    status = await cluster.wait_for_brokers(_READY_S)
    for sentence in doubtful_elections(status.elections):
        _say(sentence)
    _say(_ready_sentence(cluster))


def _ready_sentence(cluster: LocalCluster) -> str:
    missing = cluster.members.controllers.keys() - cluster.awaited.controllers.keys()
    without = f" without controller{'s' * (len(missing) > 1)} {', '.join(map(str, sorted(missing)))}" if missing else ""
    urls = " ".join(cluster.plan.controller_urls)
    return f"ready{without}: {urls}; logs in {cluster.directory / 'logs'}; Ctrl-C stops it"


async def _watch(cluster: LocalCluster, lender: Lender) -> None:
    """The live status on a terminal; elsewhere only a word when a process ends that was not lent."""
    if not sys.stdout.isatty():
        while True:
            _check(cluster, lender)
            await asyncio.sleep(_LOOK_S)
    with Live(console=Console(), auto_refresh=False, transient=True) as screen:
        while True:
            _check(cluster, lender)
            screen.update(render(await survey(cluster.client, cluster.plan.controller_urls)), refresh=True)
            await asyncio.sleep(_LOOK_S)


def _check(cluster: LocalCluster, lender: Lender) -> None:
    if not lender.is_lent:
        cluster.check()


async def _or_stopped(work: Coroutine[Any, Any, None], stopped: asyncio.Event) -> None:
    """Do the work, or stop waiting for it when we are told to stop."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(work), group.create_task(stopped.wait())}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        # Not `except*`: what is raised in there is wrapped in a group once more.
        ours = failed.subgroup(QuorateError)
        if ours is None:
            raise
        raise ours.exceptions[0] from None


def _say(sentence: str) -> None:
    sys.stderr.write(f"quorate: {sentence}\n")
    sys.stderr.flush()
