"""Opens what the settings of traces ask for."""

from __future__ import annotations

from typing import Final, Protocol

from quorate.controller.http.ports import RequestTraces
from quorate.controller.process.tracing.settings import TracingSettings
from quorate.metadata_log.invalid_settings import InvalidSettings

#: For which a collector that does not answer is waited for, also when the process ends.
_PATIENCE_S: Final = 2.0


class SentTraces(RequestTraces, Protocol):
    """Traces that somebody is sent."""

    async def close(self) -> None:
        """Send what is left, as long as whoever takes them answers."""


def open_traces(settings: TracingSettings, node_id: int, cluster_id: str) -> SentTraces | None:
    """Traces that are sent from now on, until they are closed. None: the settings name nobody who takes them.

    Raises:
        InvalidSettings: the libraries are not installed.
    """
    if settings.endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        from quorate.controller.process.tracing.otel import OtelTraces
    except ImportError as error:
        missing = f"tracing.endpoint: {error.name or error} is not installed"
        raise InvalidSettings(f"{missing}: install the extra, as `pip install 'quorate[tracing]'`") from error
    exporter = OTLPSpanExporter(settings.endpoint, timeout=_PATIENCE_S)
    return OtelTraces.sending(node_id, cluster_id, settings.sampled_share, exporter)
