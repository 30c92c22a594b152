"""The web page as a browser gets it: by whoever comes, with its policy, and with nothing of the cluster."""

from __future__ import annotations

import pytest

from quorate.controller.http.page.shell import CONTENT_POLICY, assets
from tests.integration.http_stage import stage

SECRET = b"s" * 32
BROWSER_OF_ANOTHER_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


async def test_files_of_the_page_are_anybodys_and_say_nothing_of_the_cluster() -> None:
    async with stage(1, shared_secret=SECRET) as s:
        for name, wanted in assets().items():
            url = s.urls[0] + ("/" if name == "index.html" else f"/assets/{name}")
            async with s.session.get(url, headers=BROWSER_OF_ANOTHER_SITE) as answer:
                assert (answer.status, answer.content_type) == (200, wanted.media)
                assert await answer.read() == wanted.data
                assert answer.headers["Content-Security-Policy"] == CONTENT_POLICY
                assert "X-Quorate-Cluster" not in answer.headers
                tag = answer.headers["ETag"]
            async with s.session.get(url, headers={"If-None-Match": tag}) as answer:
                assert (answer.status, await answer.read()) == (304, b"")
            async with s.session.head(url) as answer:
                assert (answer.status, answer.headers["ETag"]) == (200, tag)
        async with s.session.get(s.urls[0] + "/v1/status") as answer:
            assert answer.status == 401


@pytest.mark.parametrize("name", ["none.js", "index.html", "..%2Fshell.py", "%2e%2e%2fshell.py", "shell.py"])
async def test_file_that_the_page_has_not_is_refused(name: str) -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, "GET", f"/assets/{name}")
        assert (status, reply["error"]) == (404, "RESOURCE_NOT_FOUND")
