"""Handlers for operators' questions. An image is a value: they are answered on another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from quorate.controller.answers import can_stop, quorum_margin
from quorate.controller.answers.explain import explain, subject_rows
from quorate.controller.answers.what_if import rehearsed
from quorate.controller.api.answers.answer_models import (
    CanStopParameters,
    CanStopReason,
    CanStopReply,
    QuorumMargin,
    WhatIfReply,
    WhatIfRequest,
    node_ids,
)
from quorate.controller.api.answers.explain_models import ExplainParameters, ExplainReply
from quorate.controller.api.answers.status_models import StatusParameters
from quorate.controller.api.models import Nothing, PastViewParameters
from quorate.controller.api.resources import ElectionsReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.http.handlers.common import get_status, observe_quorum
from quorate.controller.http.read_only_node import node_at
from quorate.controller.http.routing import Call
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
        reasons = await node.turns.answer(call.rights.bounded_principal, _limit_ms(call), work)
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
    elected = rehearsal.elected
    elections = ElectionsReply(
        from_eligible=elected.from_eligible,
        last_known=elected.last_known,
        unclean=elected.unclean - elected.last_known,
    )
    return WhatIfReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        before=before,
        after=after.model_copy(update={"elections": elections}),
    )


async def explained(call: Call, parameters: ExplainParameters, body: Nothing) -> ExplainReply:
    image, config = call.node.controller.stable, call.node.config
    since_ms = await call.node.absences.at(image.provenance.end_offset)
    return await asyncio.to_thread(_explanation, image, config, parameters, since_ms)


def _explanation(
    image: MetadataImage, config: ControllerConfig, parameters: ExplainParameters, since_ms: Mapping[int, int]
) -> ExplainReply:
    rows = subject_rows(image, parameters.topic, parameters.partition, parameters.broker)
    return explain(image, config, rows, parameters.limit, since_ms)
