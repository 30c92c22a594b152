"""`quorate can-stop`: may these brokers, or these controllers, be stopped? With exit codes for scripts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.controller.api.answers.answer_models import ID_MAX, NODES_MAX, CanStopReply, StopManner
from quorate.controller.api.answers.stop_models import NAMED_MAX
from quorate.controller.client.client import ControllerClient
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import counted, show
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.line import telling

app = typer.Typer(
    help="May these brokers, or these controllers, be stopped? Exit code 0: yes; 1: no, and why.",
    no_args_is_help=True,
)

_Question = Callable[[ControllerClient], Awaitable[CanStopReply]]

#: Seconds between two questions with --wait.
_PAUSE_S: Final = 1.0

Wait = Annotated[bool, typer.Option("--wait", help="Ask again each second until they may; Ctrl-C ends it.")]


def _ids(kind: NameKind) -> Any:
    return typer.Argument(
        metavar="ID...",
        min=0,
        max=ID_MAX,
        help="The nodes' ids.",
        autocompletion=completed_by(kind),
        show_default=False,
    )


@app.command()
def broker(
    ids: Annotated[list[int], _ids(NameKind.BROKERS)],
    crash: Annotated[
        bool, typer.Option("--crash", help="All at once and without a word, not each in order as with SIGTERM.")
    ] = False,
    wait: Wait = False,
    limit: Annotated[
        int, typer.Option("--limit", min=0, max=NAMED_MAX, metavar="N", help="Name so many partitions at most.")
    ] = 20,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell which partitions would be offline, or below min.insync.replicas, if these brokers were stopped.

    The answer is what the controller would decide. What is wrong already is no reason against stopping a broker.
    Exit code 0: they may be stopped; 1: clients would notice.

    Example: quorate can-stop broker 12 --wait && systemctl restart quorate-broker
    """
    _check_count(ids)
    manner: StopManner = "crash" if crash else "shutdown"
    _answer(
        lambda client: client.answers.can_stop_brokers(ids, manner, limit),
        controllers, secret_file, from_path, at, wait=wait, as_json=as_json,
    )  # fmt: skip


@app.command()
def controller(
    ids: Annotated[list[int], _ids(NameKind.CONTROLLERS)],
    wait: Wait = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell whether a majority of the voters would be left, voting and level with the active controller.

    Exit code 0: they may be stopped; 1: nothing could be changed any more; 3: no controller answers.

    Example: quorate can-stop controller 2 --wait && systemctl restart quorate-controller
    """
    _check_count(ids)
    _answer(
        lambda client: client.answers.can_stop_controllers(ids),
        controllers, secret_file, None, None, wait=wait, as_json=as_json,
    )  # fmt: skip


def _check_count(ids: list[int]) -> None:
    if len(set(ids)) > NODES_MAX:
        raise typer.BadParameter(f"{len(set(ids))} ids: {NODES_MAX} at once is the most", param_hint="ID")


def _answer(
    question: _Question,
    controllers: str | None,
    secret_file: Path | None,
    from_path: Path | None,
    at: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    if wait and (from_path is not None or at is not None):
        raise typer.BadParameter("what was, and what is in files, does not change", param_hint="--wait")
    put = _repeated(question) if wait else question
    reply = ask(controllers, secret_file, put, path=from_path, at=at, tells=wait)
    show(reply, _lines(reply), as_json=as_json)
    raise typer.Exit(exit_codes.DONE if reply.may_stop else exit_codes.REFUSED)


def _repeated(question: _Question) -> _Question:
    async def wait(client: ControllerClient) -> CanStopReply:
        said = ""
        with telling(lambda seconds: f"waiting, for {duration(seconds)}: {said}") as line:
            while not (reply := await question(client)).may_stop:
                now = _headline(reply)
                if now != said:
                    said = now
                    line.say(f"waiting: {now}")
                await asyncio.sleep(_PAUSE_S)
        return reply

    return wait


def _headline(reply: CanStopReply) -> str:
    may = "may be stopped" if reply.may_stop else "may not be stopped"
    told = "; ".join(reason.message for reason in reply.reasons) or _well(reply)
    return f"{_subject(reply)} {may}: {told}"


def _subject(reply: CanStopReply) -> str:
    noun, ids = ("controller", reply.controllers) if reply.controllers else ("broker", reply.brokers)
    return f"{noun}{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def _well(reply: CanStopReply) -> str:
    margin = reply.quorum
    if margin is None:
        return "no partition more would be offline or below min.insync.replicas"
    return (
        f"{counted(len(margin.left), 'voter')} would be left of {margin.voters}, {margin.majority} are needed: "
        f"{margin.may_fail_then} more can fail before writes stop"
    )


def _lines(reply: CanStopReply) -> Iterator[str]:
    if reply.may_stop:
        yield _headline(reply)
    else:
        yield f"{_subject(reply)} may not be stopped:"
        for reason in reply.reasons:
            yield f"- {reason.message}"
            for topic in reason.topics:
                yield f"    {topic.topic}: {', '.join(map(str, topic.partitions))}"
            more = reason.count - sum(len(topic.partitions) for topic in reason.topics)
            if reason.topics and more > 0:
                yield f"    and {counted(more, 'partition')} more (--limit)"
    if reply.fenced:
        yield f"Fenced already: {', '.join(map(str, reply.fenced))}."
    if reply.quorum is not None and reply.quorum.moves_leadership and reply.may_stop:
        yield "The active controller is among them: another one is elected."
