"""`quorate status`: the whole cluster on one screen, from any node, with or without a quorum."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer

from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.status_screen import render
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.asking import ask, client_of
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.places.controllers import find_controllers, find_secret
from quorate.scripts.terminal.programs.documents import as_document, note_answer, note_files
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.terminal.survey import ControllerSurvey, of_state, survey

_EXIT_CODES: Final = {
    "healthy": exit_codes.DONE,
    "degraded": exit_codes.REFUSED,
    "critical": exit_codes.CRITICAL,
    "no-quorum": exit_codes.UNREACHABLE,
    "refused": exit_codes.UNREACHABLE,
    "unreachable": exit_codes.UNREACHABLE,
}
_PIPE_COLUMNS: Final = 160


class FailOn(StrEnum):
    """The least grave verdict on a cluster that answers which is a failure."""

    DEGRADED = "degraded"
    CRITICAL = "critical"


def exit_code_of(verdict: str, fail_on: FailOn) -> int:
    """The command's, for a verdict of ``ControllerSurvey``."""
    if verdict == "degraded" and fail_on is FailOn.CRITICAL:
        return exit_codes.DONE
    return _EXIT_CODES[verdict]


def status(
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing it, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks with --watch.")] = 1.0,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="From which verdict on the exit code is not 0.")
    ] = FailOn.DEGRADED,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, one object a look.")] = False,
) -> None:
    """Show the verdict on a cluster, its controllers, brokers and offline partitions.

    Every controller is asked at once, and the answer is there within a second, also when there is no quorum.
    What is wrong with partitions is explained: by which brokers, and what to do (quorate explain tells more).
    With --at or --from the verdict is on brokers and partitions: no log says how the quorum was.
    Exit code 0: healthy; 1: degraded (0 with --fail-on critical); 5: critical, partitions have no leader; 3: no quorum,
    or nobody answers, or all that do refuse to say how they are (it needs DESCRIBE on the cluster).

    Example: quorate status --controllers 127.0.0.1:18081 --watch
    """
    if from_path is not None or at is not None:
        if watch:
            raise typer.BadParameter("what was, and what is in files, does not change", param_hint="--watch")
        past = ask(controllers, secret_file, lambda client: client.status(explain=True), path=from_path, at=at)
        (note_answer if from_path is None else note_files)(past.quorum.applied_offset)
        _show(of_state(past), as_json=as_json)
        raise typer.Exit(exit_code_of(past.verdict, fail_on))
    urls = find_controllers(controllers)
    secret = find_secret(secret_file)
    verdict = asyncio.run(_run(urls, secret, interval if watch else None, as_json=as_json))
    raise typer.Exit(exit_code_of(verdict, fail_on))


async def _run(urls: Sequence[str], secret: bytes | None, interval: float | None, *, as_json: bool) -> str:
    """Show it once, and return the verdict; or, with an interval, again and again until Ctrl-C."""
    async with client_of(urls, secret) as client:
        if interval is None:
            seen = await _survey(client, urls)
            _show(seen, as_json=as_json)
            return seen.verdict
        if as_json or not sys.stdout.isatty():
            while True:
                _show(await _survey(client, urls), as_json=as_json)
                await asyncio.sleep(interval)
        from rich.live import Live  # one look needs none of it, and is to be there in a second

        with Live(console=Screen(), auto_refresh=False, screen=True) as screen:
            while True:
                screen.update(render(await survey(client, urls)), refresh=True)
                await asyncio.sleep(interval)


async def _survey(client: ControllerClient, urls: Sequence[str]) -> ControllerSurvey:
    seen = await survey(client, urls)
    note_answer(None if seen.status is None else seen.status.quorum.applied_offset)
    return seen


def _show(seen: ControllerSurvey, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(as_document(seen) + "\n")
        sys.stdout.flush()
    else:
        # Into a pipe nothing is cut off: there is no screen that it would have to fit.
        Screen(width=None if sys.stdout.isatty() else _PIPE_COLUMNS).print(render(seen))
