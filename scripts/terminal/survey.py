"""Asking every controller at once what it sees: the only way to know of a quorum that there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.status_models import StatusReason, StatusReply, Verdict
from quorate.controller.api.errors import is_no_access
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.controller.client.targets import controller_url
from quorate.metadata_log.errors import ApiError
from quorate.scripts.logins.nobody import HOW_TO_LOG_IN, is_refused_to_nobody

#: All controllers are asked at the same time; with the start of the program the screen is due within a second.
SURVEY_SECONDS: Final = 0.6


@dataclass(frozen=True, slots=True)
class ControllerProbe:
    """One controller and what came of asking it."""

    url: str
    #: None where it gave none.
    reply: StatusReply | None
    #: Why it gave none; empty where it did.
    reason: str
    #: Whether it answered, and did not let this caller see how it is.
    is_refused: bool = False

    @property
    def is_reachable(self) -> bool:
        """Whether it answered at all."""
        return self.reply is not None or self.is_refused


class AskedController(BaseModel):
    """One controller in the output for programs."""

    model_config = ConfigDict(frozen=True)

    url: str
    node_id: int | None
    is_reachable: bool
    #: It answered that whoever asks may not know how it is; the right that is missing is in ``reason``.
    is_refused: bool = False
    reason: str


class ControllerSurvey(BaseModel):
    """The answers of all of them together."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict | Literal["refused", "unreachable"]
    #: The gravest first.
    reasons: list[StatusReason]
    #: Voters of the cluster; the addresses asked, where nobody could say.
    voter_count: int
    #: None where an old state or files were asked for: no controller of that time can be.
    reachable_count: int | None
    controllers: list[AskedController]
    #: As the active controller sees the cluster; where none answers, the state of the controller that knows most.
    status: StatusReply | None


async def survey(client: ControllerClient, urls: Sequence[str]) -> ControllerSurvey:
    """Ask the controllers at ``urls``, and those that they name, within a second."""
    return judge(await _ask_all(client, [controller_url(url) for url in urls]))


async def _ask_all(client: ControllerClient, urls: Sequence[str]) -> list[ControllerProbe]:
    clock = asyncio.get_running_loop().time
    ends_at = clock() + SURVEY_SECONDS
    silent_at = ends_at - SURVEY_SECONDS / 2

    async def asked_now(url: str, *, explain: bool) -> ControllerProbe:
        return await ask(client, url, max(1.0, (ends_at - clock()) * 1000), explain=explain)

    asked: dict[str, ControllerProbe] = {}
    known: set[str] = set()
    explaining: set[str] = set()
    running: set[asyncio.Task[ControllerProbe]] = set()
    async with asyncio.TaskGroup() as group:
        new = list(dict.fromkeys(urls))
        while new or running:
            known.update(new)
            running |= {group.create_task(asked_now(url, explain=False)) for url in new}
            left = silent_at - clock()
            timeout = left if left > 0 else None
            done, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            answers = [task.result() for task in done]
            # Who does not explain what it said before said it none the less.
            asked |= {one.url: one for one in answers if one.reply is not None or one.url not in asked}
            voters = [voter for answer in answers if answer.reply for voter in answer.reply.quorum.voters]
            # One that was asked by another name, such as its socket's, is not asked twice.
            answered = {one.reply.quorum.observed_by for one in asked.values() if one.reply is not None}
            told = dict.fromkeys(voter.http for voter in voters if voter.node_id not in answered)
            new = [url for url in told if url not in known]
            is_over = clock() >= silent_at or not (new or running)
            ours = [url for url in _that_count(_by_url(asked), is_over=is_over) if url not in explaining]
            explaining.update(ours)
            running |= {group.create_task(asked_now(url, explain=True)) for url in ours}
    return _by_url(asked)


def _by_url(asked: Mapping[str, ControllerProbe]) -> list[ControllerProbe]:
    return [asked[url] for url in sorted(asked)]


def _that_count(asked: Sequence[ControllerProbe], *, is_over: bool) -> list[str]:
    """Those whose word may count, and who can say why it is so: all of them at it take the machine from each other.

    ``is_over``: whoever has said nothing yet is taken to be silent.
    """
    answers = [(one.url, one.reply) for one in asked if one.reply is not None]
    counting = [one for one in answers if one[1].quorum.is_active or one[1].quorum.active_id is None]
    if is_over and answers and not any(reply.quorum.is_active for _, reply in answers):
        counting.append(max(answers, key=lambda one: _knowledge(one[1])))
    return list(dict.fromkeys(url for url, reply in counting if any(reason.partitions for reason in reply.reasons)))


async def ask(client: ControllerClient, url: str, timeout_ms: float, *, explain: bool = False) -> ControllerProbe:
    """Ask one controller for its status. That it does not answer is an answer."""
    try:
        return ControllerProbe(url, await client.status_of(url, timeout_ms, explain=explain), "")
    except (ApiError, NotSent, NoAnswer) as error:
        return ControllerProbe(url, None, str(error), is_refused=isinstance(error, ApiError) and is_no_access(error))


def judge(asked: Sequence[ControllerProbe]) -> ControllerSurvey:
    """The answers as one. Pure."""
    replies = [one.reply for one in asked if one.reply is not None]
    actives = [reply for reply in replies if reply.quorum.is_active]
    best = max(actives or replies, key=_knowledge, default=None)
    voter_count = len(best.quorum.voters) if best is not None else len(asked)
    refusals = [
        StatusReason(code="CONTROLLER_REFUSES", message=f"{one.url} answers and refuses: {_refusal(one.reason)}")
        for one in asked
        if one.is_refused
    ]
    silent = [StatusReason(code="NO_CONTROLLER_ANSWERS", message=one.reason) for one in asked if not one.is_reachable]
    count = sum(one.is_reachable for one in asked)
    reachable = f"{count} of {voter_count} reachable"
    verdict: Verdict | Literal["refused", "unreachable"]
    if best is None and refusals:
        verdict, reasons = "refused", [*refusals, *silent]
    elif best is None:
        nobody = StatusReason(code="NO_CONTROLLER_ANSWERS", message=f"no controller answers: {reachable}")
        verdict, reasons = "unreachable", [nobody, *silent]
    elif actives:
        verdict, reasons = best.verdict, list(best.reasons)
    elif best.quorum.active_id is None or count <= voter_count // 2:
        none = StatusReason(code="NO_QUORUM", message=f"no quorum: {reachable}")
        others = [reason for reason in best.reasons if reason.code != "NO_ACTIVE_CONTROLLER"]
        verdict, reasons = "no-quorum", [none, *others]
    else:
        active = best.quorum.active_id
        message = f"controller {active} is said to be active and gives no status here ({reachable})"
        gone = StatusReason(code="ACTIVE_CONTROLLER_SILENT", message=message, nodes=[active])
        verdict, reasons = "degraded", [gone, *refusals, *best.reasons]
    return ControllerSurvey(
        verdict=verdict,
        reasons=reasons,
        voter_count=voter_count,
        reachable_count=count,
        controllers=[_asked_controller(one) for one in asked],
        status=best,
    )


def _refusal(reason: str) -> str:
    return f"{reason.rstrip('.')}; {HOW_TO_LOG_IN}" if is_refused_to_nobody(reason) else reason


def of_state(status: StatusReply) -> ControllerSurvey:
    """The facts about an old state, or about the state of files."""
    return ControllerSurvey(
        verdict=status.verdict,
        reasons=status.reasons,
        voter_count=len(status.quorum.voters),
        reachable_count=None,
        controllers=[],
        status=status,
    )


def _knowledge(reply: StatusReply) -> tuple[int, int]:
    return reply.quorum.epoch, reply.quorum.high_watermark


def _asked_controller(one: ControllerProbe) -> AskedController:
    node_id = None if one.reply is None else one.reply.quorum.observed_by
    return AskedController(
        url=one.url, node_id=node_id, is_reachable=one.is_reachable, is_refused=one.is_refused, reason=one.reason
    )
