"""``controller.http.ports.RequestTraces`` by OpenTelemetry's SDK. Imported only where requests are traced.

A request is a span, and the stretches between the moments that it passed (``engine.marks``) are spans below it. They
are made when it has been answered, so that nothing of the library runs while something waits.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from quorate.controller.api.headers import TRACE_PARENT
from quorate.controller.engine.marks import APPENDED, COMMITTED, DECIDED, TURN, Marks
from quorate.metadata_log.release import release

#: Moment -> name of the span that ends there.
_STRETCHES: Final = {TURN: "wait for turn", DECIDED: "decide", APPENDED: "append", COMMITTED: "commit"}
_LAST: Final = "answer"
#: Longer names of a trace are none: the form has 55 characters.
_PARENT_CHARS_MAX: Final = 128


class _OtelMarks(Marks):
    """With the span that stands for the request."""

    __slots__ = ("span",)

    def __init__(self, span: trace.Span, sent_as: str) -> None:
        super().__init__(time.time_ns, sent_as)
        self.span = span


class OtelTraces:
    """Of one controller process."""

    def __init__(self, node_id: int, cluster_id: str, sampled_share: float, processor: SpanProcessor) -> None:
        """``processor``: is given all spans."""
        facts = {
            "service.name": "quorate-controller",
            "service.version": release(),
            "service.instance.id": f"{cluster_id}/{node_id}",
        }
        sampler = ParentBased(TraceIdRatioBased(sampled_share))
        self._provider = TracerProvider(sampler=sampler, resource=Resource.create(facts), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("quorate")
        self._form = TraceContextTextMapPropagator()

    @classmethod
    def sending(cls, node_id: int, cluster_id: str, sampled_share: float, exporter: SpanExporter) -> OtelTraces:
        """Traces that are handed to an exporter in batches, on a thread; where it cannot keep up, some are dropped."""
        return cls(node_id, cluster_id, sampled_share, BatchSpanProcessor(exporter))

    def begin(self, parent: str) -> Marks:
        """See ``RequestTraces``."""
        carrier = {TRACE_PARENT: parent} if 0 < len(parent) <= _PARENT_CHARS_MAX else {}
        span = self._tracer.start_span(
            "request", self._form.extract(carrier), trace.SpanKind.SERVER, start_time=time.time_ns()
        )
        sent: dict[str, str] = {}
        self._form.inject(sent, trace.set_span_in_context(span))
        return _OtelMarks(span, sent.get(TRACE_PARENT, ""))

    def end(self, marks: Marks, route: str, status: int, request_id: str) -> None:
        """See ``RequestTraces``."""
        assert isinstance(marks, _OtelMarks), "they are those that it began"
        span, now = marks.span, time.time_ns()
        if not isinstance(span, Span):
            return  # it is not among those that are traced
        span.update_name(route)
        method, _, path = route.partition(" ")
        span.set_attributes(
            {
                "http.request.method": method,
                "http.route": path,
                "http.response.status_code": status,
                "quorate.request_id": request_id,
            }
        )
        begun, below = span.start_time or now, trace.set_span_in_context(span)
        for name, at in [*marks.moments, (_LAST, now)]:
            part = self._tracer.start_span(_STRETCHES.get(name, name), below, start_time=begun)
            part.end(at)
            begun = at
        span.end(now)

    async def close(self) -> None:
        """Send what is left, as long as the exporter tries."""
        await asyncio.to_thread(self._provider.shutdown)
