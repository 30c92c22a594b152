"""Libraries imported without the parts that no process of ours uses; with them they are a third of a server's start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def import_lean_server() -> None:
    """For a server. To be called before anything imports one of these libraries; afterwards it does nothing."""
    with _without_module("rich"):
        # For tracebacks in colour, in a server's log. Commands that write on a terminal import rich themselves.
        import structlog  # noqa: F401
    import_lean_client()


def import_lean_client() -> None:
    """As ``import_lean_server``, for who only asks servers."""
    with _without_certificates():
        # It reads them twice, for clients of https; we speak plain http only (`controller.client.connection`).
        import aiohttp  # noqa: F401


@contextmanager
def _without_module(name: str) -> Iterator[None]:
    """Let it seem not to be installed."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system's mark for: it is not there
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def _without_certificates() -> Iterator[None]:
    """Let the system's certificate authorities be none."""
    variable = "SSL_CERT_FILE"
    before = os.environ.get(variable)
    os.environ[variable] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
