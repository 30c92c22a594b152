"""The user who only looks, as docs/security.md makes one: its commands run, and he sees all, and changes nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from quorate.controller.http.routes.table import ROUTES
from quorate.controller.identity.bearer_tokens import token_line
from tests.integration.access.test_permissions import REFUSED, Guarded, guarded, token
from tests.integration.commands import alone
from tests.waiting import eventually

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
(RECIPE,) = re.findall(r"## A user who only looks\n.*?```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
#: Reads that the page says are not for him.
OF_OTHERS = {"/v1/audit", "/v1/audit/refusals", "/v1/metadata/batches", "/v1/metadata/checkpoint"}
QUERIES = {"/v1/configs": "?resource_type=GROUP&resource_name=g", "/v1/metadata/batches": "?offset=0&epoch=0"}


async def carried_out(line: str, g: Guarded, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of the page, in the directory ``home``, against the controllers of the test."""
    words = shlex.split(line, comments=True)
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        monkeypatch.setenv(name, value)
    elif words[0] == "scripts/quorate":
        asked = words[1 : words.index(">")] if ">" in words else words[1:]
        ended = await alone(*asked)
        assert (ended.code, ended.err) == (0, ""), (line, ended)
        if ">" in words:
            kept = home / words[-1]
            kept.touch(0o600)
            kept.write_text(ended.out, encoding="ascii")
            shown = ended.out.strip()
            assert token_line(shown, "User:viewer") in (home / "tokens").read_text()

            async def is_known() -> bool:
                return await status_of(g, "/v1/topics", shown) == 200

            await eventually(is_known, "controllers have read the file of tokens again")
    elif words[0] == "curl":
        url = words[-1].replace("127.0.0.1:18081", g.stage.urls[0].removeprefix("http://"))
        sent = {"Authorization": f"Bearer {(home / 'viewer.token').read_text().strip()}"}
        async with g.plain.get(f"http://{url}", headers=sent) as answer:
            assert answer.status == 200, line
    else:
        assert words == ["umask", "077"], line


def home_of_root(g: Guarded, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands are given in ``home`` from here on, and ask these controllers; the file there with root's token."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("QUORATE_CONTROLLERS", ",".join(g.stage.urls))
    admin = home / "admin.token"
    admin.touch(0o600)
    admin.write_text(token("User:root"))
    return admin


async def status_of(g: Guarded, path: str, shown: str) -> int:
    url = g.stage.urls[0] + path + QUERIES.get(path, "")
    async with g.plain.get(url, headers={"Authorization": f"Bearer {shown}"}) as answer:
        return answer.status


async def test_viewer_of_the_page_sees_everything_that_it_says_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path) as g:
        home_of_root(g, tmp_path, monkeypatch)
        for line in RECIPE.splitlines():
            await carried_out(line, g, tmp_path, monkeypatch)
        shown = (tmp_path / "viewer.token").read_text().strip()
        # A login is for who has not logged in.
        plain = [
            route.path
            for route in ROUTES
            if route.method == "GET" and not {"{", "login"} & set(re.split(r"/|(\{)", route.path))
        ]
        reads = {path: await status_of(g, path, shown) for path in plain}
        # Some answer 400, for they are not asked for what they need: that is found out after who asks.
        assert {path for path, status in reads.items() if status not in (200, 400)} == OF_OTHERS
        before = g.digests()
        as_viewer = {"Authorization": f"Bearer {shown}"}
        for change in (one for one in REFUSED if one.method != "GET"):
            status, _ = await g.ask("nobody", change.method, change.path, change.body, more=as_viewer)
            # He is told what is not there, for he may describe everything.
            assert status == (404 if change.path.endswith("/none") else 403), change
        assert g.digests() == before
