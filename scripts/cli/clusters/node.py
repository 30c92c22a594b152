"""`quorate node`: the processes of a cluster that `quorate up` runs: kill one and look, freeze one, start it again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.scripts.certificates.local_files import admin_tls
from quorate.scripts.cluster.control import Act
from quorate.scripts.cluster.lending import LentNode, RemoteControl
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import LocalDirectory
from quorate.scripts.terminal.output import or_dash, reader_may_leave
from quorate.scripts.terminal.places.controllers import LOCAL_DIRECTORY
from quorate.scripts.terminal.programs.failures import OUTCOME_UNKNOWN, UNREACHABLE, Failed
from quorate.scripts.terminal.tables import columns

app = typer.Typer(
    help="The processes of a cluster that `quorate up` runs: list, kill, pause and start them, fail their disks.",
    no_args_is_help=True,
)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="As controller-2 or broker-11: see `quorate node list`.",
        autocompletion=completed_by(NameKind.PROCESSES),
    ),
]
#: Within which a broker's process answers.
_ANSWER_S: Final = 5.0
#: Of a log's last line, for people.
_LINE_MAX: Final = 120
_DONE: Final[dict[Act, str]] = {
    "kill": "was killed (SIGKILL)",
    "stop": "has ended",
    "pause": "is frozen (SIGSTOP), its sockets are open",
    "resume": "goes on (SIGCONT)",
    "start": "was started",
}


@app.command("list")
def list_nodes(directory: LocalDirectory = LOCAL_DIRECTORY, as_json: AsJson = False) -> None:
    """List the processes: which run, which are frozen, how the others have ended.

    Exit code 0: all run; 1: not all; 3: nobody runs the cluster.

    Example: quorate node list --dir var
    """
    states = asyncio.run(_states(directory))
    with reader_may_leave():
        if as_json:
            sys.stdout.write(json.dumps([state.model_dump() for state in states]) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in columns(list(_rows(states))))
    if any(state.state != "running" for state in states):
        raise typer.Exit(exit_codes.REFUSED)


@app.command()
def kill(names: Names, directory: LocalDirectory = LOCAL_DIRECTORY) -> None:
    """End processes at once (SIGKILL), as a crash does; several at the same moment.

    Nothing starts them again but `quorate node start`, `quorate up --restart` neither: it was your wish.

    Example: quorate node kill broker-11
    """
    _act("kill", names, directory)


@app.command()
def stop(names: Names, directory: LocalDirectory = LOCAL_DIRECTORY) -> None:
    """Stop processes in order (SIGTERM), one after the other, and wait until each has ended.

    A broker hands its partitions over first, for up to 30 s where nobody takes them.

    Example: quorate node stop controller-2
    """
    _act("stop", names, directory)


@app.command()
def pause(names: Names, directory: LocalDirectory = LOCAL_DIRECTORY) -> None:
    """Freeze processes (SIGSTOP): they are silent, and their sockets stay open.

    Example: quorate node pause controller-1
    """
    _act("pause", names, directory)


@app.command()
def resume(names: Names, directory: LocalDirectory = LOCAL_DIRECTORY) -> None:
    """Let frozen processes go on (SIGCONT).

    Example: quorate node resume controller-1
    """
    _act("resume", names, directory)


@app.command()
def start(names: Names, directory: LocalDirectory = LOCAL_DIRECTORY) -> None:
    """Start processes that have ended. `quorate status` says when they have joined.

    Example: quorate node start broker-11 controller-2
    """
    _act("start", names, directory)


@app.command("fail-directory")
def fail_directory(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A broker, as broker-11.", show_default=False)],
    log_directory: Annotated[
        str | None,
        typer.Argument(metavar="DIR", help="Id of one of its log directories; without it the first whole one."),
    ] = None,
    directory: LocalDirectory = LOCAL_DIRECTORY,
) -> None:
    """Let a log directory of a broker fail, as a disk does: its replicas go offline.

    It stays lost until the broker is started again. A broker whose only directory failed ends.
    Exit code 1: there is no such broker or directory; 3: the broker's process cannot be reached;
    4: it has not answered, and may do it yet, as one that is frozen does when it goes on.

    Example: quorate node fail-directory broker-11
    """
    body = {} if log_directory is None else {"directory": log_directory}
    url, broker_id, tls = _broker(directory, name)
    reply = asyncio.run(_told(url, tls, "POST", f"/v1/brokers/{broker_id}/directories/fail", body))
    print(f"{name}: failed are {', '.join(reply['failed'])} of {', '.join(reply['directories'])}")


@app.command("cordon-directory")
def cordon_directory(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A broker, as broker-11.", show_default=False)],
    log_directories: Annotated[
        list[str] | None,
        typer.Argument(metavar="DIR...", help="Ids of all that shall be cordoned; none opens them all."),
    ] = None,
    directory: LocalDirectory = LOCAL_DIRECTORY,
) -> None:
    """Say which log directories of a broker take no new replicas. The list is given whole, and holds over starts.

    Exit code 1: there is no such broker or directory; 3: the broker's process cannot be reached;
    4: it has not answered, and may do it yet, as one that is frozen does when it goes on.

    Example: quorate node cordon-directory broker-11 3fJbWZJzQ8aQ5cmw0m0rBg
    """
    body = {"directories": log_directories or []}
    url, broker_id, tls = _broker(directory, name)
    reply = asyncio.run(_told(url, tls, "PUT", f"/v1/brokers/{broker_id}/directories/cordoned", body))
    print(f"{name}: cordoned are {', '.join(reply['cordoned']) or 'none'} of {', '.join(reply['directories'])}")


@app.command("slow-down")
def slow_down(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A broker, as broker-11.", show_default=False)],
    copy_bytes_per_s: Annotated[
        int | None, typer.Option(min=1, max=2**60, help="What each replica copies in a second, on its own.")
    ] = None,
    stall: Annotated[bool, typer.Option("--stall", help="Copy nothing, and say nothing to the leaders.")] = False,
    directory: LocalDirectory = LOCAL_DIRECTORY,
) -> None:
    """Let the replicas of a broker copy slowly, or not at all; without an option as fast as they can.

    It holds for all brokers that the same process plays, until it ends. A follower slower than its leader is written
    (`rehearsal.write_bytes_per_s` of the brokers) leaves the ISR after `replicas.lag_time_max_ms`.
    Exit code 1: there is no such broker; 3: the broker's process cannot be reached;
    4: it has not answered, and may do it yet, as one that is frozen does when it goes on.

    Example: quorate node slow-down broker-11 --copy-bytes-per-s 1000
    """
    if stall and copy_bytes_per_s is not None:
        raise typer.BadParameter("who copies nothing has no rate: say --stall or --copy-bytes-per-s")
    body = {"copy_bytes_per_s": copy_bytes_per_s or 0, "is_stalled": stall}
    url, _, tls = _broker(directory, name)
    pace = asyncio.run(_told(url, tls, "PUT", "/v1/rehearsal", body))
    limit = f"{pace['copy_bytes_per_s']:,} bytes a second" if pace["copy_bytes_per_s"] else "as fast as they can"
    print(f"{name}: its replicas copy {'nothing' if pace['is_stalled'] else limit}")


def _broker(directory: Path, name: str) -> tuple[str, int, TlsContexts | None]:
    """URL of the process that plays a broker of this cluster, the broker's id, and with which TLS it is asked."""
    plan = ClusterPlan.load(directory)
    if plan is None:
        raise ClusterError(f"{directory} holds no cluster: make one with `quorate up --dir {directory}`")
    tls = admin_tls(directory) if plan.is_secured else None
    played = {f"broker-{id_}": (node.url or "", id_, tls) for node in plan.members.brokers.values() for id_ in node.ids}
    if name not in played:
        raise ClusterError(f"{name[:100]!r} is no broker of this cluster; brokers are: {', '.join(played) or 'none'}")
    return played[name]


async def _told(
    url: str, tls: TlsContexts | None, method: str, path: str, body: Mapping[str, object]
) -> dict[str, Any]:
    import aiohttp  # of use to few commands, and slow to load

    timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(method, f"{url}{path}", json=body, ssl=True if tls is None else tls()) as answer,
        ):
            reply: dict[str, Any] = await answer.json()
    except aiohttp.ClientConnectorError as error:
        raise Failed(f"{url} does not answer: {error}; see `quorate node list`", name=UNREACHABLE) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        # A frozen process, too: the kernel takes the request for it, and it reads that when it goes on.
        why = str(error) or f"nothing came within {_ANSWER_S:g} s"
        raise Failed(
            f"{url} has not answered, and may do it yet: {why}; see `quorate node list`", name=OUTCOME_UNKNOWN
        ) from error
    if answer.status != 200:
        raise ClusterError(str(reply.get("message", answer.status)))
    return reply


def _act(act: Act, names: Sequence[str], directory: Path) -> None:
    exit_code = asyncio.run(_done(act, list(dict.fromkeys(names)), directory))
    how = f" with exit code {exit_code}" if exit_code else ""
    for name in dict.fromkeys(names):
        print(f"{name} {_DONE[act]}{how}")


async def _done(act: Act, names: Sequence[str], directory: Path) -> int | None:
    control = await _reach(directory)
    try:
        return await control.ask(act, names)
    finally:
        await control.end()


async def _states(directory: Path) -> tuple[LentNode, ...]:
    control = await _reach(directory)
    try:
        return await control.states()
    finally:
        await control.end()


async def _reach(directory: Path) -> RemoteControl:
    control = await RemoteControl.reach(directory)
    if control is not None:
        return control
    plan = ClusterPlan.load(directory)
    if plan is None:
        raise ClusterError(f"{directory} holds no cluster: make one with `quorate up --dir {directory}`")
    raise Failed(
        f"nobody runs cluster {plan.cluster_id} in {directory}: quorate up --dir {directory}", name=UNREACHABLE
    )


def _rows(states: Sequence[LentNode]) -> Iterator[tuple[str, ...]]:
    yield "NAME", "STATE", "PID", "ENDED", "LAST-LINE"
    for one in states:
        yield one.name, one.state, or_dash(one.pid), one.ended or "-", one.last_line[:_LINE_MAX] or "-"
