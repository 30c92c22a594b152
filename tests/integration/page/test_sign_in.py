"""Signing in on the page, in a real browser: by password and by token, and what is left of it where the right ends."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Final

import pytest

from quorate.scripts.browsing.__main__ import IS_ASKED_WHO, IS_DRAWN
from quorate.scripts.browsing.browser import BrowserError, BrowserPage, find_browser, running_browser
from tests.integration.access.login_stage import ROOT_TOKEN, LoginServers, login_servers
from tests.integration.page.page_stage import violations
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed: nothing can show the page")

KEPT: Final = "JSON.stringify([Object.keys(sessionStorage), localStorage.length, document.cookie])"


async def let_look(s: LoginServers) -> None:
    """Give ana what the page asks for."""
    acl = {"resource_type": "CLUSTER", "resource_name": "kafka-cluster", "principal": "User:ana"}
    body = {"creations": [{**acl, "operation": "DESCRIBE", "permission_type": "ALLOW"}]}
    assert (await s.stage.ask(1, "POST", "/v1/acls", body))[0] == 200


async def send(page: BrowserPage, number: int, **fields: str) -> None:
    """Fill one of the forms, and send it."""
    form = f"document.querySelectorAll('#sign-in form')[{number}]"
    for name, value in fields.items():
        await page.value(f"{form}.elements[{json.dumps(name)}].value = {json.dumps(value)}")
    await page.value(f"{form}.requestSubmit(); 0")


async def says(page: BrowserPage, words: str) -> None:
    await page.until(f"document.querySelector('#sign-in [role=alert]')?.innerText.includes({json.dumps(words)})")


async def test_password_lets_in_until_it_is_changed_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, running_browser() as browser:
        await let_look(s)
        page = await browser.page()
        await page.open(s.urls[0] + "/", 1400, 900)
        await page.until(IS_ASKED_WHO)
        await says(page, "User:ANONYMOUS")
        buttons = await page.value("[...document.querySelectorAll('#sign-in button')].map((one) => one.innerText)")
        assert buttons == ["Sign in by token", "Sign in by password"]
        assert await violations(page) == []
        await send(page, 1, user="ana", password="wrong")
        await says(page, "the user or its password is wrong")
        assert await page.value(KEPT) == '[[],0,""]'

        await send(page, 1, user="ana", password="pencil")
        await page.until(IS_DRAWN)
        assert await page.value("document.activeElement.id") == "main"
        assert await page.value(KEPT) == '[["quorate.token"],0,""]'
        assert "pencil" not in await page.value("JSON.stringify(sessionStorage)")
        assert await page.value("document.getElementById('sign-in').childElementCount") == 0

        await s.set_user("ana", "another")
        await page.until(IS_ASKED_WHO)
        assert await page.value("document.getElementById('main').hidden")


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in directory.iterdir()}


async def test_pictures_are_taken_by_whoever_is_let_in(tmp_path: Path) -> None:
    token, wrong, out = tmp_path / "token", tmp_path / "wrong", tmp_path / "out"
    for file, text in ((token, ROOT_TOKEN), (wrong, "nobody's" * 5)):
        file.touch(0o600)
        file.write_text(text)

    async def take(*arguments: str) -> tuple[int | None, list[str]]:
        command = (sys.executable, "-P", "-m", "quorate.scripts.browsing", s.urls[0] + "/", "--out", str(out))
        process = await asyncio.create_subprocess_exec(*command, *arguments, stdout=PIPE, stderr=STDOUT)
        said, _ = await process.communicate()
        return process.returncode, said.decode().splitlines()

    async with login_servers(tmp_path) as s:
        refused = f"screenshots: no picture of {s.urls[0]}/: "
        assert await take() == (1, [f"{refused}the page asks who looks; --token-file signs in"])
        code, [said] = await take("--token-file", str(wrong))
        assert (code, said.startswith(f"{refused}the page does not let in: nobody has this token")) == (1, True)
        assert contents(out) == {}
        pictures = [str(out / f"page-{width}.png") for width in (1400, 420)]
        assert await take("--token-file", str(token)) == (0, pictures)
        assert {name: data[:4] for name, data in contents(out).items()} == dict.fromkeys(pictures, b"\x89PNG")


async def test_token_lets_in_until_the_reader_signs_out(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, running_browser() as browser:
        page = await browser.page()
        await page.open(s.urls[0] + "/", 420, 900)
        await page.until(IS_ASKED_WHO)
        await send(page, 0, token=ROOT_TOKEN)
        await page.until(IS_DRAWN)

        await page.value("document.getElementById('sign-out').click()")

        async def is_asked_again() -> bool:
            try:
                return bool(await page.value(f"{IS_ASKED_WHO} && !document.querySelector('.headline') && true"))
            except BrowserError:  # the page is on its way out
                return False

        await eventually(is_asked_again, "the page is loaded anew, and shows nothing of the cluster")
        assert await page.value(KEPT) == '[[],0,""]'
        assert not [address for address in page.asked if ROOT_TOKEN in address]
