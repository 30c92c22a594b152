"""Settings of traces."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from quorate.controller.process.setting_group import Group


class TracingSettings(Group):
    """Traces of requests, by OpenTelemetry. They need the extra: `pip install 'quorate[tracing]'`."""

    endpoint: str | None = Field(default=None, max_length=2_000)
    """Where a collector takes traces by OTLP over HTTP, with the path, as `http://127.0.0.1:4318/v1/traces`. Unset:
    there are none. What else the exporter is told, as the headers by which a collector knows who sends, stands in the
    variables that OpenTelemetry has for it (OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE)."""
    sampled_share: float = Field(default=0.01, ge=0.0, le=1.0)
    """Of requests that bring no trace of their own, the share that is traced. Those that bring one (`traceparent`) are
    traced as whoever sends them has decided."""

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, text: str | None) -> str | None:
        if text is None:
            return None
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text[:100]!r} is no address of a collector, like http://127.0.0.1:4318/v1/traces")
        return text
