"""`quorate refusals`: which requests were refused, to whom and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.metadata_log.audit.refusal_lines import RefusalLine, read_refusals
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile, files_not_address
from quorate.scripts.terminal.named_addresses import reason_not_to_ask
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.places.controllers import find_controllers, find_secret
from quorate.scripts.terminal.tables import columns

_TITLES: Final = ("TIME", "NODE", "TIMES", "REQUEST", "PRINCIPAL", "PROOF", "ADDRESS", "ERROR", "MESSAGE")
_PATIENCE_MS: Final = 2_000.0
#: As many as a controller gives at once.
_LIMIT_MAX: Final = 10_000

#: Node id, or where it lies, and a line.
_Told = tuple[str, RefusalLine]


def _all_files(paths: list[Path] | None) -> list[Path] | None:
    for path in paths or ():
        files_not_address(path)
    return paths


def show_refusals(
    path: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Ask no controller: read metadata directories. May be repeated.",
            callback=_all_files,
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=_LIMIT_MAX, metavar="N", help="The last N at most.")
    ] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line.")] = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show which requests were refused: when, how often, in whose name, from where, and why.

    PROOF is how it was proved whose name it is: certificate, token, scram, ...; `said`: by nothing. Each controller
    writes down what it refused; all of the quorum are asked. Exit code 3: one of them did not answer.

    Example: quorate refusals --limit 20
    """
    told: list[_Told] = []
    failures: list[str] = []
    wanted = min(limit + 1, _LIMIT_MAX)  # one more says that there are more
    if path:
        told = [(directory.name, line) for directory in path for line in read_refusals(directory, wanted)]
    else:
        told, failures = _asked(controllers, secret_file, wanted)
    told.sort(key=lambda one: one[1].time_ms)
    with reader_may_leave():
        sys.stdout.writelines(f"{line}\n" for line in (_json if as_json else _table)(told[-limit:]))
    if len(told) > limit:
        sys.stderr.write(f"quorate: the last {limit} are shown; --limit shows more\n")
    for failure in failures:
        sys.stderr.write(f"quorate: {failure}\n")
    if failures:
        raise typer.Exit(exit_codes.UNREACHABLE)


def _asked(controllers: str | None, secret_file: Path | None, limit: int) -> tuple[list[_Told], list[str]]:
    from quorate.controller.client.client import ControllerClient
    from quorate.controller.client.connection import NoAnswer, NotSent
    from quorate.controller.client.targets import controller_url
    from quorate.metadata_log.errors import ApiError

    named = [controller_url(text) for text in find_controllers(controllers)]
    secret = find_secret(secret_file)

    async def question(client: ControllerClient) -> tuple[list[_Told], list[str]]:
        told: list[_Told] = []
        failures = []
        for voter in (await client.describe_quorum()).voters:
            reason = reason_not_to_ask(voter.http, named, secret)
            if reason is not None:
                failures.append(f"controller {voter.node_id} does not say what it refused: {reason}")
                continue
            try:
                reply = await client.audit.refusals(voter.http, limit, _PATIENCE_MS)
            except (ApiError, NotSent, NoAnswer) as error:
                failures.append(f"controller {voter.node_id} does not say what it refused: {error}")
            else:
                told += [(str(reply.node_id), RefusalLine(**one.model_dump())) for one in reply.refusals]
        return told, failures

    return ask(controllers, secret_file, question)


def _json(told: Sequence[_Told]) -> list[str]:
    return [json.dumps({"node": node, **line._asdict()}, ensure_ascii=False) for node, line in told]


def _table(told: Sequence[_Told]) -> list[str]:
    rows = [
        (format_time(line.time_ms), node, str(line.times), line.request or "(of many kinds)", line.principal or "-",
         line.proof or "-", line.address or "-", line.error or "-", line.message or "-")
        for node, line in told
    ]  # fmt: skip
    return columns([_TITLES, *rows])
