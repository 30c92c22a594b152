"""Prometheus' own principal, as docs/watching.md makes it: it has the metrics, not the log, and changes nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.integration.access.test_permissions import REFUSED, guarded
from tests.integration.access.test_viewer_page import home_of_root, status_of
from tests.integration.commands import alone
from tests.waiting import eventually

PAGE = Path(__file__).parents[3] / "docs" / "watching.md"
(RECIPE,) = re.findall(r"## Letting Prometheus in\n.*?```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


async def test_scraper_of_the_page_has_the_metrics_and_not_the_log_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path) as g:
        monkeypatch.setenv("QUORATE_SHARED_SECRET_FILE", str(home_of_root(g, tmp_path, monkeypatch)))
        mask, make, allow = (shlex.split(line, comments=True) for line in RECIPE.splitlines())
        assert mask == ["umask", "077"]
        made = await alone(*make[1 : make.index(">")])
        assert (made.code, made.err) == (0, "")
        shown = made.out.strip()

        async def is_known() -> bool:
            return await status_of(g, "/metrics", shown) == 403

        await eventually(is_known, "controllers have read the file of tokens again, and nothing is allowed yet")
        allowed = await alone(*allow[1:])
        assert (allowed.code, allowed.err) == (0, "")
        assert await status_of(g, "/metrics", shown) == 200
        assert {path: await status_of(g, path, shown) for path in ("/v1/acls", "/v1/metadata/batches")} == {
            "/v1/acls": 200,
            "/v1/metadata/batches": 403,
        }
        before, as_scraper = g.digests(), {"Authorization": f"Bearer {shown}"}
        posts = [change for change in REFUSED if change.method == "POST"]
        answers = [await g.ask("nobody", one.method, one.path, one.body, more=as_scraper) for one in posts]
        assert {status for status, _ in answers} == {403}
        assert g.digests() == before
