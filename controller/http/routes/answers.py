"""The rows of the route table that answer operators' questions."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.answers.answer_models import CanStopParameters, CanStopReply, WhatIfReply, WhatIfRequest
from quorate.controller.api.answers.explain_models import ExplainParameters, ExplainReply
from quorate.controller.api.answers.plan_models import FactsReply, PlannedChange
from quorate.controller.api.answers.timeline_models import TimelineParameters, TimelineReply
from quorate.controller.api.models import Nothing, PastViewParameters, ReadParameters
from quorate.controller.http.handlers import answers
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.facts import FACTS_RULE
from quorate.controller.permissions.permission import ByItem, OnCluster

ANSWER_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/answers/can-stop",
        "Whether brokers or controllers may be stopped, and what would happen if they were",
        answers.can_be_stopped,
        tag="answers",
        permission=OnCluster("DESCRIBE"),
        parameters=CanStopParameters,
        body=Nothing,
        reply=CanStopReply,
        serving=Serving.VIEW,
        errors=(400, 404),
    ),
    route(
        "GET",
        "/v1/answers/explain",
        "The things that are wrong with partitions or a controller, what explains them, and what to do about it",
        answers.explained,
        tag="answers",
        permission=OnCluster("DESCRIBE"),
        parameters=ExplainParameters,
        body=Nothing,
        reply=ExplainReply,
        serving=Serving.VIEW,
        errors=(400, 404),
    ),
    route(
        "POST",
        "/v1/answers/facts",
        "The facts that changes go by, which do not happen: what a plan writes down, and is compared with",
        answers.facts,
        tag="answers",
        permission=ByItem(FACTS_RULE),
        parameters=ReadParameters,
        body=PlannedChange,
        reply=FactsReply,
        serving=Serving.CONSISTENT,
        takes_lists=True,
        errors=(422,),
    ),
    route(
        "GET",
        "/v1/answers/timeline",
        "What happened to controllers, brokers and partitions, from when to when: the last part of the log",
        answers.what_happened,
        tag="answers",
        permission=OnCluster("DESCRIBE"),
        parameters=TimelineParameters,
        body=Nothing,
        reply=TimelineReply,
        serving=Serving.HERE,
        errors=(409,),
    ),
    route(
        "POST",
        "/v1/answers/what-if",
        "The status before and after events that do not happen: brokers stop and start, racks and directories are lost",
        answers.what_if,
        tag="answers",
        permission=OnCluster("DESCRIBE"),
        parameters=PastViewParameters,
        body=WhatIfRequest,
        reply=WhatIfReply,
        serving=Serving.VIEW,
        takes_lists=True,
        errors=(404, 422),
    ),
)
