"""The web page in a real browser: how it looks from a desk and a phone, by keyboard, and to who cannot see it.

One browser for all of it, and one controller; skipped where no Chromium is installed.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Final
from urllib.parse import quote

import pytest

from quorate.scripts.browsing.__main__ import IS_DRAWN
from quorate.scripts.browsing.browser import BrowserPage, find_browser
from tests.integration.http_stage import Stage
from tests.integration.page.page_stage import DESK, PHONE, degraded, overhang, violations
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed: nothing can show the page")

#: Ninety moves in a second and a half, back and forth; then the slider is let go. The milliseconds that it took, and
#: the moment at which the hand left it.
DRAG: Final = """
(async () => {
  const begun = performance.now();
  const slider = document.querySelector(".slider");
  const [begin, end] = [Number(slider.min), Number(slider.max)];
  let left = 0;
  for (let move = 0; move < 90; move += 1) {
    slider.value = begin + ((move % 30) * (end - begin)) / 40;
    left = Number(slider.value);
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => setTimeout(done, 16));
  }
  slider.dispatchEvent(new Event("change"));
  return [performance.now() - begun, new Date(left).toISOString()];
})()
"""
NOW: Final = "[...document.querySelectorAll('.steps button')].find((one) => one.innerText === 'Now')"


async def shows_verdict(s: Stage, page: BrowserPage) -> bool:
    """Whether the page says what the status says now: it changes, and the page follows."""
    status = (await s.ask(1, "GET", "/v1/status"))[1]
    shown = await page.value("document.querySelector('.headline').innerText")
    messages = await page.value("[...document.querySelectorAll('.reasons .message')].map((one) => one.innerText)")
    return (shown.lower(), messages) == (status["verdict"], [reason["message"] for reason in status["reasons"]])


async def focus_by_tab(page: BrowserPage, wanted: str) -> None:
    """Press Tab until the element that a selector names has the focus."""
    for _ in range(60):
        await page.press("Tab")
        if await page.value(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
    pytest.fail(f"Tab does not come to {wanted}")


async def test_page_is_whole_at_every_width_and_says_what_the_controller_says() -> None:
    async with degraded() as (s, page):
        for width, is_dark in ((DESK, False), (PHONE, True)):
            await page.open(s.urls[0] + "/", width, 900, is_dark=is_dark)
            await page.until(IS_DRAWN)
            await page.until("document.querySelectorAll('.lane').length === 5")
            assert await overhang(page) == 0, width
            await eventually(partial(shows_verdict, s, page), "the page shows the verdict of the status", 60)
            assert await violations(page) == []
        assert page.complaints == []
        assert {address for address in page.asked if not address.startswith(s.urls[0] + "/")} == set()
        assert len(page.asked) > 10


async def test_dragging_asks_now_and_then_and_ends_where_it_was_left() -> None:
    """As many moves as a hand makes in a second and a half; each is drawn, and hardly any is asked about."""
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", DESK, 900)
        await page.until(IS_DRAWN)
        await page.until("document.querySelectorAll('.events button').length > 3")
        asked = len(page.asked)
        took_ms, left = await page.value(DRAG)
        await page.until("document.body.classList.contains('past')")
        moments = [address for address in page.asked[asked:] if "/v1/status?" in address]
        assert 1 <= len(moments) <= 2 + took_ms / 300
        assert quote(left, safe="") in moments[-1]
        assert page.complaints == []


async def test_events_are_buttons_to_their_moments() -> None:
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", PHONE, 900, is_dark=True)
        await page.until(IS_DRAWN)
        await page.until("document.querySelectorAll('.events button').length > 3")
        await page.value("document.querySelector('.event-list').open = true; 0")
        assert (await overhang(page), await violations(page)) == (0, [])
        wanted = await page.value("document.querySelector('.events li:last-child button').dataset.at")
        await page.value("document.querySelector('.events li:last-child button').click()")
        await page.until(f"document.getElementById('facts').innerText.includes('Offset\\n{wanted}')")
        await page.value(
            "[...document.querySelectorAll('.steps button')].find((one) => one.innerText === 'Now').click()"
        )
        await page.until("!document.body.classList.contains('past')")


async def test_keyboard_is_enough_for_explanations_and_the_past() -> None:
    async with degraded() as (s, page):
        await page.open(s.urls[0] + "/", DESK, 900)
        await page.until(IS_DRAWN)
        await focus_by_tab(page, ".slider")
        await page.press("Home")
        await page.until("document.body.classList.contains('past')")
        assert await page.value("document.querySelector('.slider').ariaValueText") != "Now"
        await page.until("document.getElementById('racks').innerText.includes('No broker')")
        await page.press("End")
        await page.until("!document.body.classList.contains('past') && document.querySelector('.tile')")
        await focus_by_tab(page, "[data-explain='broker=12'], [data-explain='broker=11']")
        await page.press("Enter")
        await page.until(
            "document.querySelector('dialog[open] #explanation-body') && !document.querySelector('.waiting')"
        )
        assert await violations(page) == []
        await page.press("Escape")
        assert await page.value("document.querySelector('dialog[open]') === null")
        assert page.complaints == []
