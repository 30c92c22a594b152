"""Traces of requests, from HTTP to the commit, as OpenTelemetry's own SDK hands them to whoever takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from quorate.controller.api.headers import TRACE_PARENT
from tests.integration.http.test_express import TOPICS, Client, in_lane, new_topics, request
from tests.integration.http_stage import Stage, stage

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry is not installed: it is a development dependency")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from quorate.controller.process.tracing.otel import OtelTraces

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
STRETCHES: Final = ["wait for turn", "decide", "append", "commit", "answer"]


class Kept:
    """What each controller has sent."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.sent: dict[int, InMemorySpanExporter] = {}

    def begin(self, on: Stage) -> None:
        """From now on all members trace."""
        for node_id, member in on.members.items():
            self.sent[node_id] = InMemorySpanExporter()
            traces = OtelTraces(node_id, "a-cluster", self._share, SimpleSpanProcessor(self.sent[node_id]))
            assert member._server is not None
            object.__setattr__(member._server._lane.node, "traces", traces)

    def roots(self, node_id: int, route: str) -> list[ReadableSpan]:
        return [span for span in self.sent[node_id].get_finished_spans() if span.name == route]

    def below(self, node_id: int, root: ReadableSpan) -> list[ReadableSpan]:
        spans: Sequence[ReadableSpan] = self.sent[node_id].get_finished_spans()
        return [span for span in spans if span.parent is not None and span.parent.span_id == id_of(root)]


def id_of(span: ReadableSpan) -> int:
    return int(span.context.span_id)


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_request_through_a_standby_is_one_trace_from_the_client_to_the_commit() -> None:
    kept = Kept(0.0)
    async with stage(2) as on:
        kept.begin(on)
        await on.register(1, 1)
        sent = {TRACE_PARENT: SAMPLED, "X-Request-Id": "a-name"}
        status, _, _ = await on.ask(2, "POST", TOPICS, new_topics("orders", validate_only=False), headers=sent)
        assert status == 200
    (passed_on,), (decided,) = kept.roots(2, "POST /v1/topics"), kept.roots(1, "POST /v1/topics")
    assert {f"{span.context.trace_id:032x}" for span in (passed_on, decided)} == {TRACE}
    assert passed_on.parent is not None
    assert decided.parent is not None
    assert (f"{passed_on.parent.span_id:016x}", decided.parent.span_id) == (PARENT, id_of(passed_on))
    assert facts(decided) == {
        "http.request.method": "POST",
        "http.route": "/v1/topics",
        "http.response.status_code": 200,
        "quorate.request_id": "a-name",
    }
    assert [span.name for span in kept.below(2, passed_on)] == ["answer"]
    parts = kept.below(1, decided)
    assert [span.name for span in parts] == STRETCHES
    # One begins where the other ends, and together they are the request.
    ends = [(span.start_time or 0, span.end_time or 0) for span in parts]
    assert [end for _, end in ends[:-1]] == [begin for begin, _ in ends[1:]]
    assert (ends[0][0], ends[-1][1]) == (decided.start_time, decided.end_time)
    assert all(begin <= end for begin, end in ends)
    # The registration before brought no trace, and none of those is to be traced.
    assert {span.context.trace_id for span in kept.sent[1].get_finished_spans()} == {decided.context.trace_id}


async def test_read_and_refusal_have_no_stretches_that_they_did_not_pass() -> None:
    kept = Kept(1.0)
    async with stage(1) as on:
        kept.begin(on)
        assert (await on.ask(1, "GET", "/v1/topics/none"))[0] == 404
        assert (await on.ask(1, "GET", "/v1/cluster"))[0] == 200
    (refused,), (read,) = kept.roots(1, "GET /v1/topics/{name}"), kept.roots(1, "GET /v1/cluster")
    for root, status in ((refused, 404), (read, 200)):
        assert facts(root)["http.response.status_code"] == status
        assert [span.name for span in kept.below(1, root)] == ["answer"]


@pytest.mark.parametrize(
    ("share", "parent", "is_traced"),
    [
        (1.0, "", True),
        (0.0, "", False),
        (0.0, SAMPLED, True),
        (1.0, NOT_SAMPLED, False),
        (0.0, "no trace at all", False),
        (1.0, "00-" + "f" * 5_000, True),
    ],
)
async def test_who_brings_a_trace_decides_and_else_the_share_does(share: float, parent: str, is_traced: bool) -> None:
    kept = Kept(share)
    async with stage(1) as on:
        kept.begin(on)
        assert (await on.ask(1, "GET", "/livez", headers={TRACE_PARENT: parent} if parent else {}))[0] == 200
    assert len(kept.roots(1, "GET /livez")) == is_traced


async def test_request_that_does_without_the_framework_is_traced_too() -> None:
    kept = Kept(1.0)
    async with stage(1) as on:
        kept.begin(on)
        await on.register(1, 1)
        client = await Client.open(on)
        await client.write(request(TOPICS, new_topics("orders", validate_only=False)))
        assert (await client.read())[0] == 200
        assert in_lane(on) == 2  # and the one that registered the broker
        client.close()
    (root,) = kept.roots(1, "POST /v1/topics")
    assert [span.name for span in kept.below(1, root)] == STRETCHES
