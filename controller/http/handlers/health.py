"""`/livez`: is it worth keeping this process. `/readyz`: does it do its part, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aiohttp import web

from quorate.controller.api.content import JSON
from quorate.controller.api.models import HealthCheck, HealthReply, Nothing
from quorate.controller.http.callers import may_describe
from quorate.controller.http.ports import Node

#: A committed record is applied within milliseconds, a checkpoint of a million partitions within a second.
STALLED_MS_MAX: Final = 3_000.0


def ready_checks(node: Node) -> Iterator[HealthCheck]:
    """The conditions that a node fulfils when it does its part."""
    view = node.cluster.quorum()
    has_leader = view.leader_id is not None
    leader = f"controller {view.leader_id} is active" if has_leader else "no active controller is known"
    yield HealthCheck(name="active-controller", ok=has_leader, message=leader)
    voting = "votes" if view.is_voting else "does not vote: memory was lost; quorum describe says what it waits for"
    yield HealthCheck(name="voter", ok=view.is_voting, message=voting)
    stalled = node.cluster.stalled_ms()
    lag = max(0, view.high_watermark - node.controller.applied_offset)
    applied = f"state is at offset {node.controller.applied_offset}, {lag} records behind"
    yield (
        HealthCheck(
            name="applied", ok=stalled <= STALLED_MS_MAX, message=f"{applied}, standing still for {stalled:.0f} ms"
        )
        if lag
        else HealthCheck(name="applied", ok=True, message=applied)
    )
    faults = node.cluster.faults()
    yield HealthCheck(name="faults", ok=not faults, message="; ".join(faults) or "none")


async def get_livez(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    return _answer(HealthReply(ok=True, node_id=node.node_id, checks=[]))


async def get_readyz(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    checks = list(ready_checks(node))
    is_ok = all(check.ok for check in checks)
    # Everybody is told whether a node is ready; why not, whoever may ask for its status.
    return _answer(HealthReply(ok=is_ok, node_id=node.node_id, checks=checks if may_describe(node) else []))


def _answer(reply: HealthReply) -> web.Response:
    return web.Response(status=200 if reply.ok else 503, body=reply.model_dump_json().encode(), content_type=JSON)
