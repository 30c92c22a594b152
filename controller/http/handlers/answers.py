"""Handlers for operators' questions. An image is a value: they are answered on another thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from quorate.controller.answers import can_stop, explain_controller, quorum_margin
from quorate.controller.answers.election_costs import elections_of
from quorate.controller.answers.subjects import AskedPartitions, Moments, explain_subject
from quorate.controller.answers.timeline import STRETCH_MAX, TimelineNode, told_timeline
from quorate.controller.answers.what_if import rehearsed
from quorate.controller.api.answers.answer_models import (
    CanStopParameters,
    CanStopReply,
    WhatIfReply,
    WhatIfRequest,
    node_ids,
)
from quorate.controller.api.answers.explain_models import ExplainParameters, ExplainReply
from quorate.controller.api.answers.plan_models import FactsReply, PlannedChange
from quorate.controller.api.answers.status_models import StatusParameters
from quorate.controller.api.answers.stop_models import CanStopReason, QuorumMargin
from quorate.controller.api.answers.timeline_models import TimelineParameters, TimelineReply
from quorate.controller.api.models import Nothing, PastViewParameters, ReadParameters
from quorate.controller.api.resources import QuorumReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.http.handlers.common import get_status, observe_quorum, read_image
from quorate.controller.http.ports import Node
from quorate.controller.http.read_only_node import node_at
from quorate.controller.http.routing import Call
from quorate.controller.permissions.facts import need_facts
from quorate.controller.plans.facts import facts_of
from quorate.controller.reads.answer_turns import Check
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage


async def can_be_stopped(call: Call, parameters: CanStopParameters, body: Nothing) -> CanStopReply:
    node, image = call.node, call.node.controller.stable
    brokers, controllers = node_ids(parameters.brokers), node_ids(parameters.controllers)
    if bool(brokers) == bool(controllers):
        message = "name `brokers` or `controllers`: one question is about nodes of one kind"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    margin: QuorumMargin | None = None
    if controllers:
        quorum = observe_quorum(node)
        margin = quorum_margin.quorum_without(quorum, controllers)
        reasons = quorum_margin.reasons_against(quorum, controllers, margin)
    else:
        work = partial(_of_brokers, image, node.config, brokers, parameters)
        reasons = [
            *quorum_margin.reasons_without_active(observe_quorum(node)),
            *await node.turns.answer(call.rights.bounded_principal, _limit_ms(call), work),
        ]
    return CanStopReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        manner=parameters.manner,
        brokers=brokers,
        fenced=[broker_id for broker_id in brokers if image.cluster.brokers[broker_id].is_fenced],
        controllers=controllers,
        may_stop=not reasons,
        reasons=reasons,
        quorum=margin,
    )


def _of_brokers(
    image: MetadataImage, config: ControllerConfig, brokers: list[int], parameters: CanStopParameters, check: Check
) -> list[CanStopReason]:
    stop = can_stop.stop_brokers(image, config, brokers, parameters.manner, check)
    return can_stop.reasons_against(stop, parameters.limit)


def _limit_ms(call: Call) -> float:
    return min(call.timeout_ms, call.node.limits.read_timeout_ms)


async def what_if(call: Call, parameters: PastViewParameters, body: WhatIfRequest) -> WhatIfReply:
    node, image = call.node, call.node.controller.stable
    work = partial(rehearsed, image, node.config, body.steps)
    rehearsal = await node.turns.answer(call.rights.bounded_principal, _limit_ms(call), work)
    leader_id = node.cluster.position().leader_id
    before, after = [
        await get_status(replace(call, node=node_at(node, state, leader_id)), StatusParameters(), Nothing())
        for state in (image, rehearsal.image)
    ]
    return WhatIfReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        before=before,
        after=after.model_copy(update={"elections": elections_of(rehearsal.elected)}),
        quorum_reasons=quorum_margin.reasons_without_active(observe_quorum(node)),
    )


async def facts(call: Call, parameters: ReadParameters, body: PlannedChange) -> FactsReply:
    need_facts(call.rights, body)
    image = await read_image(call, parameters)
    work = partial(facts_of, image, body)
    found = await call.node.turns.answer(call.rights.bounded_principal, _limit_ms(call), work)
    return FactsReply(
        cluster_id=call.node.cluster_id,
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        facts=found,
    )


async def explained(call: Call, parameters: ExplainParameters, body: Nothing) -> ExplainReply:
    node, image = call.node, call.node.controller.stable
    if parameters.controller is not None:
        return _of_controller(image, observe_quorum(node), parameters.controller)
    subject = AskedPartitions(parameters.topic, parameters.partition, parameters.broker)
    work = partial(_of_partitions, image, node.config, subject, parameters.limit, await _moments(node, image, subject))
    found = await node.turns.answer(call.rights.bounded_principal, _limit_ms(call), work)
    quorum = observe_quorum(node)
    symptoms, remedies = found.symptoms, found.remedies
    if not quorum.is_past and quorum.active_id is None:
        symptoms = [explain_controller.left_without_active(), *symptoms]
        remedies = [*explain_controller.ways_to_an_active(quorum), *remedies]
    elif not quorum.is_past and subject == AskedPartitions():
        symptoms = [*symptoms, *explain_controller.symptoms_of_all(quorum)]
        remedies = [*remedies, *explain_controller.remedies_of_all(quorum)]
    return found.model_copy(update={"symptoms": symptoms, "remedies": remedies})


def _of_controller(image: MetadataImage, quorum: QuorumReply, node_id: int) -> ExplainReply:
    found = explain_controller.explain_controller(quorum, image.cluster.controllers, node_id)
    return ExplainReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        partitions=0,
        symptoms=explain_controller.symptoms_of(quorum, found.voter),
        remedies=list(explain_controller.remedies_of(quorum, found.voter)),
        controller=found,
    )


async def _moments(node: Node, image: MetadataImage, subject: AskedPartitions) -> Moments:
    end_offset = image.provenance.end_offset
    absent_ms = await node.absences.at(end_offset)
    moving = subject.reassigned(image)
    return Moments(absent_ms) if moving is None else Moments(absent_ms, await node.additions.of(*moving, end_offset))


def _of_partitions(
    image: MetadataImage, config: ControllerConfig, subject: AskedPartitions, limit: int, moments: Moments, check: Check
) -> ExplainReply:
    return explain_subject(image, config, subject, limit, moments, check)


async def what_happened(call: Call, parameters: TimelineParameters, body: Nothing) -> TimelineReply:
    node, before = call.node, parameters.before
    with node.turns.place(call.rights.bounded_principal):
        stretch = await node.past.stretch_before(before, STRETCH_MAX)
        quorum = node.cluster.quorum()
        now_ms = None if quorum.is_past else int(node.cluster.wall_ms())
        about = TimelineNode(node.cluster_id, node.config, now_ms, quorum.is_past or quorum.leader_id is not None)
        return await node.turns.run(_limit_ms(call), partial(told_timeline, stretch, about, before, parameters.limit))
