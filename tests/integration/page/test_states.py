"""The page in states that nobody likes to be in: what it says first, and whether all of it can be read.

In a real browser; skipped where no Chromium is installed.
"""

from __future__ import annotations

from typing import Final

import pytest

from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.serving import HttpServer
from quorate.scripts.browsing.__main__ import IS_DRAWN
from quorate.scripts.browsing.browser import BrowserPage, find_browser, running_browser
from tests.integration.http_stage import stage
from tests.integration.page.page_stage import DESK, PHONE, degraded, overhang, violations

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed: nothing can show the page")

BANNER: Final = "document.getElementById('then')"
NOTICE: Final = "document.getElementById('notice')"
TO_THE_BEGIN: Final = """
(() => {
  const slider = document.querySelector(".slider");
  slider.value = slider.min;
  slider.dispatchEvent(new Event("input"));
  slider.dispatchEvent(new Event("change"));
  return Number(slider.min);
})()
"""
LIVE: Final = "document.getElementById('live').innerText"
#: Leaders of brokers 11 to 14, each of another shade of a tile.
LEADERS: Final = (10, 8, 6, 2)
#: What a rack may be called, and no page should take for anything but a name.
RACKS: Final = ("<img src=x onerror=alert(1)>", "\u202egnp.exe", "אחת", "r" * 249)


async def heading(page: BrowserPage) -> str:
    return str(await page.value("document.getElementById('actions-title').innerText"))


async def test_every_shade_and_every_name_can_be_read() -> None:
    """Four brokers of four shades, in racks whose names are no names; at a desk and on a phone, light and dark."""
    async with stage(1) as s, running_browser() as browser:
        for place, rack in enumerate(RACKS):
            await s.register(1, 11 + place, rack)
        brokers = [11 + place for place, count in enumerate(LEADERS) for _ in range(count)]
        assignments = [{"partition_index": index, "broker_ids": [id_]} for index, id_ in enumerate(brokers)]
        topic = {"name": "t" * 249, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [topic]})
        assert status == 200, reply
        page = await browser.page()
        for width, is_dark in ((DESK, False), (PHONE, True)):
            await page.open(s.urls[0] + "/", width, 900, is_dark=is_dark)
            await page.until(IS_DRAWN)
            shades = await page.value(
                "[...document.querySelectorAll('.tile')].map((one) => /shade-(.)/.exec(one.className)[1])"
            )
            assert sorted(shades) == ["1", "3", "4", "5"]
            named = await page.value(
                "[...document.querySelectorAll('.rack h3 > :first-child')].map((one) => one.innerText)"
            )
            assert sorted(named) == sorted(f"rack {rack}" for rack in RACKS)
            assert (await overhang(page), await violations(page)) == (0, [])
            await page.value(f"location.hash = '#explain?topic={topic['name']}'")
            await page.until("document.querySelector('dialog[open] #explanation-body .empty')")
            assert (await overhang(page), await violations(page)) == (0, [])
        assert page.complaints == []


async def test_page_is_no_wider_than_the_narrowest_window() -> None:
    """Also with the words that stand above more events than are listed."""
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", 240, 900)
        await page.until(f"{IS_DRAWN} && document.querySelectorAll('.events button').length > 3")
        summary = "document.querySelector('.event-list summary')"
        await page.value(f"{summary}.textContent = '12,345 events, the last 100 listed'; 0")
        assert await overhang(page) == 0


async def test_without_a_quorum_controllers_are_to_be_started_first() -> None:
    async with degraded() as (s, page):
        s.quorum.elect(None)
        await page.open(s.urls[0] + "/", PHONE, 900)
        await page.until(f"{IS_DRAWN} && document.querySelectorAll('.remedies > li').length > 1")
        assert await page.value("document.querySelector('.headline').innerText") == "No quorum"
        remedies = await page.value(
            "[...document.querySelectorAll('.remedies p:first-child')].map((one) => one.innerText)"
        )
        assert remedies[0].startswith("start controllers until a majority runs")
        assert any("broker 12" in remedy for remedy in remedies[1:])
        assert (await overhang(page), await violations(page)) == (0, [])


async def test_past_is_called_so_above_the_verdict_wherever_one_reads() -> None:
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", PHONE, 900, is_dark=True)
        await page.until(f"{IS_DRAWN} && document.querySelectorAll('.events button').length > 3")
        assert await page.value(f"{BANNER}.hidden")
        ms = await page.value(TO_THE_BEGIN)
        await page.until(f"document.body.classList.contains('past') && {IS_DRAWN}")
        moment = await page.value(f"new Date({ms}).toISOString().slice(0, 19).replace('T', ' ')")
        assert f"Not now: the cluster as it was at {moment} UTC" in await page.value(f"{BANNER}.innerText")
        assert (await page.value("document.title"), await heading(page)) == (
            "Then: Healthy · Quorate",
            "What there was to do",
        )
        assert await page.value("document.querySelector('.sentence').innerText.includes('needed anybody')")
        assert (await overhang(page), await violations(page)) == (0, [])
        # At the end of the page, too, it stands at the top of the window.
        await page.value("window.scrollTo(0, document.body.scrollHeight); 0")
        await page.until("scrollY > 300")
        assert 0 <= await page.value(f"{BANNER}.getBoundingClientRect().top") < 10

        await page.value("document.getElementById('return').click()")
        await page.until(f"!document.body.classList.contains('past') && {BANNER}.hidden")
        assert (await page.value("document.title"), await heading(page)) == ("Degraded · Quorate", "What to do")


async def test_page_whose_controller_ends_says_since_when_and_comes_back_with_it() -> None:
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", DESK, 900)
        await page.until(f"{IS_DRAWN} && {LIVE}.startsWith('Live')")
        member = s.members[1]
        await member.stop_serving()
        await page.until(f"!{NOTICE}.hidden")
        shown = (await page.value(LIVE)).removeprefix("Not live: of ")
        assert f"has not answered since {shown} UTC: what is shown is of then" in await page.value(
            f"{NOTICE}.innerText"
        )
        assert await violations(page) == []
        port = int(member.url.rpartition(":")[2])
        server = await HttpServer.start(member.node, "127.0.0.1", port, 1.0, ROUTES)
        try:
            await page.until(f"{NOTICE}.hidden && !{LIVE}.startsWith('Not')")
        finally:
            await server.close()


async def test_paper_is_light_and_has_the_shades_and_nothing_to_press() -> None:
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", DESK, 900)
        await page.until(IS_DRAWN)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        await page.tell("Emulation.setEmulatedMedia", media="print", features=dark)
        shown = (
            "[...document.querySelectorAll('input, .steps button, .ask button')].filter((one) => one.checkVisibility())"
        )
        assert await page.value(f"{shown}.length") == 0
        assert await page.value("getComputedStyle(document.querySelector('.tile')).printColorAdjust") == "exact"
        assert await page.value("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 248)"


async def test_timeline_that_does_not_come_is_missed_aloud() -> None:
    routes = [route for route in ROUTES if route.path != "/v1/answers/timeline"]
    async with stage(1, routes=routes) as s, running_browser() as browser:
        page = await browser.page()
        await page.open(s.urls[0] + "/", PHONE, 900)
        await page.until(IS_DRAWN)
        assert "No timeline this time: " in await page.value("document.getElementById('timeline').innerText")
        controls = "[...document.querySelectorAll('#timeline :is(button, input, summary)')]"
        assert await page.value(f"{controls}.filter((one) => one.checkVisibility()).length") == 0
        assert (await overhang(page), await violations(page)) == (0, [])
