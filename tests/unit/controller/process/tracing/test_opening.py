"""Traces are opened where the settings name a collector; nothing of OpenTelemetry is imported where they do not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from quorate.controller.process.tracing.opening import open_traces
from quorate.controller.process.tracing.settings import TracingSettings
from quorate.metadata_log.invalid_settings import InvalidSettings

ENDPOINT = "http://127.0.0.1:4318/v1/traces"
#: Says which of the library's modules are there when requests are not traced.
_LOOK = """
import sys
import quorate.controller.process.server
from quorate.controller.process.tracing.opening import open_traces
from quorate.controller.process.tracing.settings import TracingSettings
assert open_traces(TracingSettings(), 1, "a-cluster") is None
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_nothing_is_traced_or_imported_unless_it_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", _LOOK], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"


def test_collector_without_the_libraries_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidSettings, match=r"tracing\.endpoint: .* is not installed: install the extra, as `pip "):
        open_traces(TracingSettings(endpoint=ENDPOINT), 1, "a-cluster")


@pytest.mark.parametrize("text", ["127.0.0.1:4318", "ftp://127.0.0.1/v1", "http://", "file:///etc/passwd", "x" * 2_001])
def test_collector_has_an_address_of_http(text: str) -> None:
    with pytest.raises(ValidationError, match=r"no address of a collector|at most 2000"):
        TracingSettings(endpoint=text)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_share_is_one(share: float) -> None:
    with pytest.raises(ValidationError, match="sampled_share"):
        TracingSettings(endpoint=ENDPOINT, sampled_share=share)
