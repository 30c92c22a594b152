"""`GET /v1/audit`: who asked the answering node for what, by the offsets of what was written."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.audit_models import (
    AuditLineReply,
    AuditParameters,
    AuditReply,
    RefusalParameters,
    RefusalReply,
    RefusalsReply,
)
from quorate.controller.api.models import Nothing
from quorate.controller.http.routing import Call, Route, Serving, route
from quorate.controller.permissions.permission import SuperUser


async def list_audit_lines(call: Call, parameters: AuditParameters, body: Nothing) -> AuditReply:
    audit = call.node.audit
    page = await audit.page(parameters)
    return AuditReply(
        node_id=call.node.node_id,
        first_offset=page.first_offset,
        dropped=audit.dropped,
        lines=[AuditLineReply.model_construct(**line._asdict()) for line in page.lines],
        next_offset=page.next_offset,
    )


async def list_refusals(call: Call, parameters: RefusalParameters, body: Nothing) -> RefusalsReply:
    lines = await call.node.refusals.newest(parameters.limit)
    refusals = [RefusalReply.model_construct(**line._asdict()) for line in lines]
    return RefusalsReply(node_id=call.node.node_id, refusals=refusals)


AUDIT_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/audit",
        "Who asked the node that is asked for what: a line for each event that it decided and that wrote records",
        list_audit_lines,
        tag="audit",
        permission=SuperUser(),
        parameters=AuditParameters,
        body=Nothing,
        reply=AuditReply,
        serving=Serving.HERE,
    ),
    route(
        "GET",
        "/v1/audit/refusals",
        "Which requests the node that is asked refused, to whom and why, the newest",
        list_refusals,
        tag="audit",
        permission=SuperUser(),
        parameters=RefusalParameters,
        body=Nothing,
        reply=RefusalsReply,
        serving=Serving.HERE,
    ),
)
