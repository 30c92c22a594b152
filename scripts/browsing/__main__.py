"""`scripts/screenshots`: the web page as pictures, light and dark, on a desk and on a phone."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.browsing.browser import BrowserError, running_browser
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run

#: Width and height of windows, in pixels.
_SIZES: Final = ((1400, 900), (420, 900))
#: The page has its answers, or has said why not.
IS_DRAWN: Final = (
    "!document.querySelector('.waiting') && document.querySelector('#actions > *, #notice:not([hidden])') "
    "&& !document.getElementById('actions').innerText.startsWith('Asking') "
    "&& document.getElementById('timeline').ariaBusy === 'false'"
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def screenshots(
    url: Annotated[str, typer.Argument(help="A controller's page, or that of `quorate page --from PATH`.")],
    out: Annotated[Path, typer.Option(help="Directory for the PNG files.")] = Path("var/screenshots"),
    name: Annotated[str, typer.Option(help="What the files are called.")] = "page",
    event: Annotated[
        int | None, typer.Option(min=1, help="Show the past: the moment behind the Nth event from the end.")
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="As browsers show it that are set to dark.")] = False,
) -> None:
    """Take pictures of the web page, 1400 and 420 pixels wide.

    Takes the Chromium that is installed. Exit code 1: there is none, or the page does not come.

    Example: scripts/screenshots http://127.0.0.1:18081/ --name healthy
    """
    out.mkdir(parents=True, exist_ok=True)
    failure: Exception | None = None
    try:
        asyncio.run(_take(url, out, name, event, is_dark=dark))
    except* (BrowserError, TimeoutError, OSError) as errors:
        failure = errors.exceptions[0]
    if failure is not None:
        typer.echo(f"screenshots: no picture of {url}: {failure!r}", err=True)
        raise typer.Exit(exit_codes.REFUSED)


async def _take(url: str, out: Path, name: str, event: int | None, *, is_dark: bool) -> None:
    async with running_browser() as browser:
        page = await browser.page()
        for width, height in _SIZES:
            await page.open(url, width, height, is_dark=is_dark)
            await page.until(IS_DRAWN)
            if event is not None:
                await page.until(f"document.querySelectorAll('.events button').length >= {event}")
                facts = await page.value("document.getElementById('facts').innerText")
                await page.value(f"document.querySelectorAll('.events button')[{event - 1}].click()")
                await page.until(f"document.getElementById('facts').innerText !== {json.dumps(facts)} && {IS_DRAWN}")
            path = out / f"{name}{'-dark' if is_dark else ''}-{width}.png"
            await asyncio.to_thread(path.write_bytes, await page.picture())
            print(path)


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/screenshots")
