"""`quorate undo`: finds a request in the log, shows the way back, and goes it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.plans.way_back import WayBack, plan_back, way_back
from quorate.controller.plans.way_back_parts import RequestStates
from quorate.controller.plans.written_requests import WrittenRequest, written_requests
from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli.logs.audit_sources import AllSources
from quorate.scripts.cli.logs.history_places import places, telling_of_reading
from quorate.scripts.cli.plans.apply import ApplyOptions, PlanRun, refuse_changed, say_plan
from quorate.scripts.cli.plans.plan_files import refuse_existing, save_plan
from quorate.scripts.cli.plans.plan_ids import last_change, plan_of, without_number
from quorate.scripts.cli.plans.steps import standings
from quorate.scripts.terminal.arguments import PlanTo, confirm
from quorate.scripts.terminal.asking import AskingClient, ask
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.output import format_time
from quorate.scripts.terminal.programs.failures import Failed
from quorate.snapshots.image.image import MetadataImage

#: Events that whoever runs a cluster asks for: what brokers ask for by themselves is not to be taken back.
_ASKED_FOR: Final = frozenset(PlannedChange.model_fields) | {"elect_unclean_leaders"}

#: Seconds within which a controller that lags has caught up, and between two looks at how far it is.
_LAG_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.2
#: Changes before one that cannot be taken back, of which one is named.
_LOOKED_AT: Final = 20


class NothingToUndo(QuorateError):
    """No request of the log can be taken back by what was said."""


class _Past(NamedTuple):
    requests: list[WrittenRequest]
    now: MetadataImage
    cluster_id: str
    #: The id by which the requests are taken back: theirs, or their plan's.
    name: str
    #: With --last the other requests that are near, in the order of the log.
    others: list[WrittenRequest]


def undo(
    request_id: Annotated[
        str | None,
        typer.Argument(metavar="REQUEST-ID", help="As `quorate history` has it.", show_default=False),
    ] = None,
    last: Annotated[
        bool,
        typer.Option(
            "--last", help="The last change that was not taken back, whoever made it; of a plan all its steps."
        ),
    ] = False,
    rest: Annotated[
        bool, typer.Option("--rest", help="Also where some of it has changed since: take back the rest.")
    ] = False,
    plan: PlanTo = None,
    *,
    options: ApplyOptions,
) -> None:
    """Take back what a request changed: it is found in the log, and the way back shown and asked about.

    What no request brings back is said before: data that were deleted, records that an unclean election lost. What
    somebody has changed since is named, and nothing is done then, without --rest. In `quorate history` the way back is
    the request undo:REQUEST-ID, which can be taken back, too. Who asked is known to the controllers that decided.

    Example: quorate undo --last
    """
    if (request_id is None) != last:
        raise typer.BadParameter("say which request: its id, or --last")
    if plan is not None:
        refuse_existing(plan)
    controllers, secret_file = options.controllers, options.secret_file
    past = _last(controllers, secret_file) if request_id is None else _find(request_id, controllers, secret_file)
    _say_what_it_was(past.requests)
    back = way_back([RequestStates(one.before, one.after, past.now) for one in past.requests])
    if last and not back.changes and not back.since:
        raise Failed(*map(shown_name, _sentences(back)), f"nothing of it can be taken back{_instead(past)}")
    _say_what_is_not_so(back, rest=rest)
    made = plan_back(back, past.now, past.cluster_id, request_id or past.name, int(time.time() * 1000))
    if plan is not None:
        save_plan(plan, made)
        return
    say_plan(made, options)
    confirm("take it back", yes=options.yes)
    found = ask(options.controllers, options.secret_file, lambda client: standings(client, made))
    refuse_changed(found)
    PlanRun(made, found, options).to_its_end()


def _last(controllers: str | None, secret_file: Path | None) -> _Past:
    """As ``_find`` of the last change, out of a log that has all that was committed when it was begun to be read: a
    controller that was cut off knows of no later one.

    Raises:
        As ``_find``. NotController: no majority says how far that is.
    """
    committed = ask(controllers, secret_file, _committed_end)
    give_up = time.monotonic() + _LAG_S
    while (end := (past := _find(None, controllers, secret_file)).now.provenance.end_offset) < committed:
        if time.monotonic() >= give_up:
            raise NothingToUndo(
                f"which change is the last is not known: the log that was read ends at offset {end}, and there are "
                f"{committed} records"
            )
        ask(controllers, secret_file, _a_moment)
    return past


async def _a_moment(client: ControllerClient) -> None:
    await asyncio.sleep(_LOOK_AGAIN_S)


async def _committed_end(client: ControllerClient) -> int:
    """The end of what a majority has agreed on."""
    await client.list_topics(limit=1, consistency="linearizable")
    assert isinstance(client, AskingClient)
    return client.high_watermark or 0


def _own_id(line: AuditLine) -> str:
    return line.request_id or ""


def _find(request_id: str | None, controllers: str | None, secret_file: Path | None) -> _Past:
    """The request of this id, of several of one id the last, or all steps of a plan; or the last that still stands, of
    a plan all its steps that do.

    Raises:
        NothingToUndo: there is none, or nobody knows which one is the last.
    """
    found: list[WrittenRequest] = []
    unknown: list[int] = []
    now: MetadataImage | None = None
    chosen: list[WrittenRequest] = []
    with telling_of_reading(None), places(None, controllers, secret_file) as (log, audit):
        for stretch in log.stretches:
            written = written_requests(stretch.start, stretch.batches, audit, _is_asked_for)
            found, now = [*written.requests, *found], written.end if now is None else now
            unknown = [*written.unknown, *unknown]
            chosen = _last_change(found) if request_id is None else _named(found, request_id)
            if chosen and (request_id is not None or _begins(found, chosen)):
                break
        if chosen and now is not None:
            if request_id is None:
                _refuse_unknown(chosen[-1].line.base_offset, unknown, audit)
            others = _without(found, chosen) if request_id is None else []
            return _Past(chosen, now, log.cluster_id, _name(found, chosen), others)
        unheard = "".join(f"; controller {node_id} does not say who asked it" for node_id in _silent(audit))
    if request_id is None:
        raise NothingToUndo(f"the log tells of no change that can be taken back{unheard}")
    raise NothingToUndo(f"the log tells of no change by request {request_id[:80]!r}{unheard}")


def _silent(audit: AllSources) -> list[int | None]:
    """Controllers that do not say which events they decided."""
    return [source.node_id for source in audit.sources if source.silence]


def _refuse_unknown(chosen: int, unknown: Sequence[int], audit: AllSources) -> None:
    """Refuse to call a request the last one where a silent controller may have decided another one behind it.

    Raises:
        NothingToUndo: something changed behind the offset of the chosen one, and nobody says by which event.
    """
    behind, silent = [offset for offset in unknown if offset > chosen], _silent(audit)
    if behind and silent:
        who = f"controller{'' if len(silent) == 1 else 's'} {', '.join(map(str, silent))}"
        raise NothingToUndo(
            f"which change is the last is not known: {who} cannot be asked who made the one at offset {behind[-1]}; "
            "quorate history names those before it: quorate undo REQUEST-ID"
        )


def _last_change(found: Sequence[WrittenRequest]) -> list[WrittenRequest]:
    """The last request that was not taken back; of a plan all its steps that were not."""
    return [found[place] for place in last_change([_own_id(one.line) for one in found])]


def _plan(found: Sequence[WrittenRequest], chosen: WrittenRequest) -> str | None:
    """The id of the plan whose step it is; None: it is none."""
    return plan_of(_own_id(chosen.line), {_own_id(one.line) for one in found})


def _begins(found: Sequence[WrittenRequest], chosen: Sequence[WrittenRequest]) -> bool:
    """Whether all steps of the plan are among those found, if it is one."""
    plan = _plan(found, chosen[-1])
    return plan is None or any(_own_id(one.line) == f"{plan}:1" for one in found)


def _without(found: Sequence[WrittenRequest], chosen: Sequence[WrittenRequest]) -> list[WrittenRequest]:
    is_chosen = set(map(id, chosen))  # they hold whole states, which nobody wants to compare
    return [one for one in found if id(one) not in is_chosen]


def _name(found: Sequence[WrittenRequest], chosen: Sequence[WrittenRequest]) -> str:
    return _plan(found, chosen[-1]) or _own_id(chosen[-1].line)


def _instead(past: _Past) -> str:
    """The last change before it that can be taken back, to be put behind a sentence."""
    others = past.others
    for _ in range(_LOOKED_AT):
        found = _last_change(others)
        if not found:
            break
        if way_back([RequestStates(one.before, one.after, past.now) for one in found]).changes:
            return f"; the change before it that can be: quorate undo {_name(others, found)}"
        others = _without(others, found)
    return "; quorate history names the changes before it: quorate undo REQUEST-ID"


def _named(found: list[WrittenRequest], request_id: str) -> list[WrittenRequest]:
    """The last request of this id, or all steps of a plan, once the first of them is among them.

    A request can be taken back more than once, and the ways back are called alike: the last of them is meant.
    """
    named = [one for one in found if _own_id(one.line) == request_id]
    steps = [one for one in found if _own_id(one.line) != request_id == without_number(_own_id(one.line))]
    firsts = [place for place, one in enumerate(steps) if _own_id(one.line) == f"{request_id}:1"]
    return named[-1:] or (steps[firsts[-1] :] if firsts else [])


def _is_asked_for(line: AuditLine) -> bool:
    return line.event in _ASKED_FOR and line.request_id is not None


def _say_what_it_was(requests: list[WrittenRequest]) -> None:
    for one in requests:
        line = one.line
        said = f"{line.event} by {line.principal} ({line.address}, {line.request_id}) at {format_time(one.time_ms)}"
        sys.stderr.write(f"{shown_name(said)}, offset {line.base_offset}\n")


def _say_what_is_not_so(back: WayBack, *, rest: bool) -> None:
    """Say what cannot be taken back, and why.

    Raises:
        Failed: nothing can, or some has changed since and the rest is not wanted.
    """
    sentences = [shown_name(sentence) for sentence in _sentences(back)]
    if back.since and not rest:
        raise Failed(*sentences, "nothing was done; --rest takes back what nobody has changed since")
    if not back.changes:
        raise Failed(*sentences, "nothing of it can be taken back")
    sys.stderr.writelines(f"quorate: {sentence}\n" for sentence in sentences)


def _sentences(back: WayBack) -> Iterator[str]:
    yield from (f"not as it left it: {sentence}" for sentence in back.since)
    yield from (f"does not come back: {sentence}" for sentence in back.lost)
