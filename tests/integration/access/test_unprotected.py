"""What a controller's API goes without is said by its status and by a metric, and makes no cluster degraded."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.http.handlers.common import unprotected_by
from quorate.scripts.cli.status_screen import render
from quorate.scripts.terminal.survey import of_state
from tests.integration.access.test_permissions import guarded
from tests.integration.http_stage import stage


@pytest.mark.parametrize("is_past", [False, True])
async def test_status_names_what_protects_nobody_and_the_cluster_is_healthy(*, is_past: bool) -> None:
    async with stage(1) as s, ControllerClient(s.urls, at="1" if is_past else None) as client:
        status = await client.status()
        assert status.unprotected_by == ([] if is_past else ["tls", "authorizer"])
        assert status.verdict == "healthy"
        async with s.session.get(f"{s.urls[0]}/metrics") as answer:
            text = await answer.text()
    assert 'quorate_unprotected{by="tls"} 1.0' in text
    assert 'quorate_unprotected{by="authorizer"} 1.0' in text


async def test_what_protects_is_not_named(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        node = g.stage.members[1].node
        assert unprotected_by(node) == ["tls"]
        assert unprotected_by(replace(node, tls=ssl.create_default_context)) == []
        async with g.stage.session.get(f"{g.stage.urls[0]}/metrics") as answer:
            text = await answer.text()
    assert 'quorate_unprotected{by="authorizer"} 0.0' in text


async def test_people_are_told_too() -> None:
    async with stage(1) as s, ControllerClient(s.urls) as client:
        shown = render(of_state(await client.status()))
    assert "Insecure: no TLS, no authorizer" in [str(part) for part in shown.renderables]  # type: ignore[union-attr]
