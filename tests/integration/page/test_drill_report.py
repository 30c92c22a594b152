"""The report of drills in a real browser, from a desk and a phone; skipped where no Chromium is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from quorate.scripts.browsing.browser import find_browser, running_browser
from quorate.scripts.drills.report import page
from tests.unit.scripts.drills.test_drills import outcome_of

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed: nothing can show the report")

#: Pixels by which the page is wider than its window.
OVERHANG: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def test_report_is_whole_at_every_width(tmp_path: Path) -> None:
    """With what is longest in one: a digest, which has no place to break."""
    file = tmp_path / "report.html"
    noted: dict[str, float | str] = {"digest": "0f" * 32, "writes": 1_000}
    file.write_text(page([outcome_of(outage_ms).model_copy(update={"noted": noted}) for outage_ms in (50.0, 12_345.6)]))
    async with running_browser() as browser:
        shown = await browser.page()
        for width in (1400, 420):
            await shown.open(file.as_uri(), width, 900)
            await shown.until("document.querySelectorAll('svg').length === 2")
            assert await shown.value(OVERHANG) == 0, width
