"""A survey as one screen for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quorate.controller.api.answers.explain_models import ExplainedRemedy, ExplainedSymptom
from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.api.resources import BrokerReply, ElectionsReply, PartitionCounts, StatesReply, VoterReply
from quorate.scripts.cli.answers.explanation_words import cause_words, command_words, start_words
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.output import ago, counted, or_dash
from quorate.scripts.terminal.survey import AskedController, ControllerSurvey

_VERDICT_STYLE: Final = {
    "healthy": "bold green",
    "degraded": "bold yellow",
    "critical": "bold red",
    "no-quorum": "bold red",
    "refused": "bold red",
    "unreachable": "bold red",
}
_ROLE_STYLE: Final = {"active": "green", "standby": "", "non-voter": "yellow", "unreachable": "red", "unknown": "dim"}
_STATE_STYLE: Final = {"active": "", "controlled-shutdown": "yellow", "fenced": "red"}
_PROTECTIONS: Final = {"tls": "no TLS", "authorizer": "no authorizer"}
#: Brokers shown one by one: what fits a screen. Those that are not active come first.
_BROKERS_MAX: Final = 30
_REASONS_MAX: Final = 8
_CAUSES_MAX: Final = 3
_REMEDIES_MAX: Final = 3


def render(survey: ControllerSurvey) -> RenderableType:
    """The screen."""
    parts: list[RenderableType] = [_headline(survey), *_reasons(survey)]
    status = survey.status
    if status is not None:
        parts += [Text(), _voters(status) if status.quorum.is_past else _controllers(survey, status)]
        if status.brokers:
            parts += [Text(), _brokers(status)]
        parts += [Text(), _partitions(status.partitions, status.topics), _replicas(status.states)]
        parts += [Text(line, style="yellow") for line in doubtful_elections(status.elections)]
        if status.offline_partitions:
            parts.append(_offline(status))
        if status.unprotected_by:
            without = ", ".join(_PROTECTIONS[one] for one in status.unprotected_by)
            parts.append(Text(f"Insecure: {without}", style="dim"))
        if status.unsupported:
            kept = ", ".join(f"{count} {kind}" for kind, count in status.unsupported.items())
            parts.append(Text(f"Stored, and without effect here: {kept}", style="dim"))
    return Group(*parts)


def _headline(survey: ControllerSurvey) -> Text:
    line = Text()
    line.append(survey.verdict.replace("-", " ").upper(), style=_VERDICT_STYLE[survey.verdict])
    if survey.status is None:
        return line
    quorum = survey.status.quorum
    line.append(f"  cluster {survey.status.cluster_id or '-'}")
    if quorum.is_past:
        leader = or_dash(quorum.active_id)
        line.append(f"  state at offset {quorum.applied_offset}  epoch {quorum.epoch}, led by controller {leader}")
        return line
    active = "no active controller" if quorum.active_id is None else f"active controller {quorum.active_id}"
    line.append(f"  {active}  epoch {quorum.epoch}  high watermark {quorum.high_watermark}")
    if not quorum.is_active:
        line.append(f"  (last known to controller {quorum.observed_by})", style="dim")
    return line


def _reasons(survey: ControllerSurvey) -> list[RenderableType]:
    explanation = None if survey.status is None else survey.status.explanation
    symptoms = {} if explanation is None else {str(symptom.code): symptom for symptom in explanation.symptoms}
    lines: list[RenderableType] = []
    for reason in survey.reasons[:_REASONS_MAX]:
        lines.append(Text(f"  - {reason.message}"))
        if (symptom := symptoms.get(reason.code)) is not None:
            lines += [Text(f"      {words}", style="dim") for words in _causes(symptom)]
    if len(survey.reasons) > _REASONS_MAX:
        lines.append(Text(f"  - and {len(survey.reasons) - _REASONS_MAX} more", style="dim"))
    to_do = list(_to_do(survey, [] if explanation is None else explanation.remedies))
    return [*lines, *([Text("To do:")] if to_do else []), *(Text(f"  {words}") for words in to_do)]


def _causes(symptom: ExplainedSymptom) -> Iterator[str]:
    yield f"{counted(symptom.topics, 'topic')}, {symptom.share:.1%} of the partitions"
    yield from (f"because {cause_words(cause)}" for cause in symptom.causes[:_CAUSES_MAX])
    if len(symptom.causes) > _CAUSES_MAX:
        yield f"and because of {counted(len(symptom.causes) - _CAUSES_MAX, 'broker')} more"


def _to_do(survey: ControllerSurvey, remedies: Sequence[ExplainedRemedy]) -> Iterator[str]:
    if survey.verdict == "no-quorum" and (silent := _silent(survey)):
        yield f"start {', '.join(silent)}; where disks are lost: quorate recover survey"
        yield f"    {start_words(name.replace(' ', '-') for name in silent)}"
    for remedy in remedies[:_REMEDIES_MAX]:
        yield f"{remedy.message}{'' if remedy.risk == 'NONE' else f'  (risk: {remedy.risk})'}"
        if command := command_words(remedy):
            yield f"    {command}"
    if remedies:
        yield "quorate explain names the partitions, and tells the rest"


def _silent(survey: ControllerSurvey) -> list[str]:
    """The voters that do not answer here."""
    answered = {one.node_id for one in survey.controllers if one.is_reachable}
    voters = [] if survey.status is None else survey.status.quorum.voters
    return [f"controller {voter.node_id}" for voter in voters if voter.node_id not in answered]


def _table(*columns: str) -> Table:
    """Words to the left, what is counted (after a ``>``) to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return table


def _controllers(survey: ControllerSurvey, status: StatusReply) -> Table:
    answers = {one.url: one for one in survey.controllers}
    by_id = {one.node_id: one for one in survey.controllers if one.node_id is not None}
    table = _table("controller", "role", ">log end (offset)", ">lag (records)", ">last contact", "address")
    for voter in status.quorum.voters:
        here = by_id.get(voter.node_id) or answers.get(voter.http)
        role = Text(_role(voter, here), style=_ROLE_STYLE[voter.role])
        contact = "" if voter.role == "active" else ago(voter.last_contact_ms)
        table.add_row(
            str(voter.node_id), role, or_dash(voter.log_end_offset), or_dash(voter.lag_records), contact, voter.http
        )
    return table


def _voters(status: StatusReply) -> Text:
    """Of an old state: no log says how each of them was."""
    return Text(f"voters: {', '.join(str(voter.node_id) for voter in status.quorum.voters) or '-'}")


def _role(voter: VoterReply, here: AskedController | None) -> str:
    """As its quorum sees it; where the quorum cannot say, what asking it from here told."""
    told = "does not answer" if here is None or not here.is_reachable else "refuses" if here.is_refused else "answers"
    if voter.role == "unknown":
        return told
    return voter.role if told == "answers" or voter.role == "unreachable" else f"{voter.role}, {told} here"


def _brokers(status: StatusReply) -> Table:
    table = _table("broker", "state", "rack", ">applied (offset)", ">lag (records)", ">heartbeat", "address")
    for broker in _shown(status.brokers):
        table.add_row(
            str(broker.id),
            Text(broker.state.replace("-", " "), style=_STATE_STYLE[broker.state]),
            shown_name(broker.rack or ""),
            or_dash(broker.applied_offset),
            or_dash(broker.lag_records),
            ago(broker.last_heartbeat_ms),
            ", ".join(f"{shown_name(listener.host)}:{listener.port}" for listener in broker.listeners[:1]),
        )
    if len(status.brokers) > _BROKERS_MAX:
        active = sum(broker.state == "active" for broker in status.brokers)
        table.add_row("...", Text(f"{len(status.brokers)} in all, {active} active", style="dim"))
    return table


def _shown(brokers: Sequence[BrokerReply]) -> list[BrokerReply]:
    if len(brokers) <= _BROKERS_MAX:
        return list(brokers)
    ranked = sorted(brokers, key=lambda broker: (broker.state == "active", -(broker.lag_records or 0), broker.id))
    return sorted(ranked[:_BROKERS_MAX], key=lambda broker: broker.id)


def _partitions(counts: PartitionCounts, topics: int) -> Text:
    line = Text(f"{counted(topics, 'topic')}, {counted(counts.total, 'partition')}: ")
    conditions = (
        (counts.offline, "offline", "bold red"),
        (counts.under_min_isr, "under min ISR", "red"),
        (counts.under_replicated, "under-replicated", "yellow"),
        (counts.reassigning, "reassigning", ""),
        (counts.without_preferred_leader, "not led by their preferred replica", ""),
    )
    for place, (count, name, style) in enumerate(conditions):
        line.append("" if place == 0 else ", ")
        line.append(f"{count:,} {name}", style=style if count else "")
    return line


def _replicas(states: StatesReply) -> Text:
    """By state, under the names of Kafka's older controller."""
    by_state = ((count, state.removesuffix("Replica").lower()) for state, count in states.replicas.items())
    told = ", ".join(f"{count:,} {name}" for count, name in by_state)
    return Text(f"{counted(sum(states.replicas.values()), 'replica')}: {told}")


def doubtful_elections(elections: ElectionsReply) -> list[str]:
    """The consequences of elections of leaders that were not in sync for the records: a sentence for each kind there
    was.
    """
    told = (
        (elections.from_eligible, "by eligible replicas, with all that was acknowledged"),
        (elections.last_known, "by their last known leaders: what these had not flushed when they went down is lost"),
        (elections.unclean, "uncleanly, by other replicas: what these had not copied is lost"),
    )
    return [f"{_partition_count(count)} led again {how}" for count, how in told if count]


def _partition_count(count: int) -> str:
    return f"{counted(count, 'partition')} {'was' if count == 1 else 'were'}"


def _offline(status: StatusReply) -> Text:
    more = status.partitions.offline - len(status.offline_partitions)
    names = ", ".join(status.offline_partitions) + (f" and {more} more" if more > 0 else "")
    return Text(f"Offline: {names}", style="red")
