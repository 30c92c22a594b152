"""A cluster in trouble, a page of a real browser, and what a reader is left with: for the tests of the web page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from quorate.scripts.browsing.browser import BrowserPage, running_browser
from tests.integration.http_stage import Stage, stage

DESK, PHONE = 1400, 420
AXE: Final = Path(__file__).parents[2] / "data" / "axe" / "axe.min.js"
#: What nobody can be left with, by axe's own word for it.
SERIOUS: Final = {"serious", "critical"}


@asynccontextmanager
async def degraded() -> AsyncIterator[tuple[Stage, BrowserPage]]:
    """A cluster of two brokers, one of which is gone, and a page that shows nothing yet."""
    async with stage(1) as s, running_browser() as browser:
        for broker_id in (11, 12):
            await s.register(1, broker_id)
        topic = {"name": "orders", "num_partitions": 3, "replication_factor": 2}
        await s.ask(1, "POST", "/v1/topics", {"topics": [topic]})
        await s.ask(1, "DELETE", "/v1/brokers/12")
        yield s, await browser.page()


async def overhang(page: BrowserPage) -> int:
    """Pixels by which the page is wider than its window."""
    return int(await page.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


async def violations(page: BrowserPage) -> list[dict[str, Any]]:
    """What axe finds that is serious."""
    await page.value(AXE.read_text(encoding="utf-8") + ";0")
    found = json.loads(await page.value("axe.run().then((found) => JSON.stringify(found.violations))"))
    return [
        {"rule": one["id"], "says": one["help"], "where": [node["html"] for node in one["nodes"]]}
        for one in found
        if one["impact"] in SERIOUS
    ]
