"""`scripts/screenshots`: the web page as pictures, light and dark, on a desk and on a phone."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from quorate.metadata_log.private_files import read_secret
from quorate.scripts.browsing.browser import PATIENCE_S, BrowserError, BrowserPage, running_browser
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

#: It wants to know who looks.
IS_ASKED_WHO: Final = "!document.getElementById('sign-in').hidden && !!document.querySelector('#sign-in form')"
_SAYS: Final = "document.querySelector('#sign-in [role=alert]')"


class _Visit(NamedTuple):
    """One look at the page, and how it is done."""

    url: str
    #: Signs in, where the page asks; None: nobody does.
    token: str | None
    is_dark: bool
    is_insecure: bool


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
    token_file: Annotated[
        Path | None, typer.Option(help="The file of a token that signs in where the page asks who looks.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Take any certificate, as that of a cluster's own authority.")
    ] = False,
) -> None:
    """Take pictures of the web page, 1400 and 420 pixels wide.

    Takes the Chromium that is installed. Exit code 1: there is none, or the page does not come.

    Examples:

      scripts/screenshots http://127.0.0.1:18081/ --name healthy

      scripts/screenshots https://127.0.0.1:18081/ --insecure --token-file ana.token
    """
    out.mkdir(parents=True, exist_ok=True)
    token = None if token_file is None else read_secret(token_file, "--token-file").decode()
    visit = _Visit(url, token, dark, insecure)
    failure: Exception | None = None
    try:
        asyncio.run(_take(visit, out, name, event))
    except* (BrowserError, TimeoutError, OSError) as errors:
        failure = errors.exceptions[0]
    if failure is not None:
        typer.echo(f"screenshots: no picture of {url}: {_words(failure, event)}", err=True)
        raise typer.Exit(exit_codes.REFUSED)


def _words(failure: Exception, event: int | None) -> str:
    if isinstance(failure, TimeoutError):
        behind = "" if event is None else f", with {event} events on its timeline"
        return f"it has not come within {PATIENCE_S:.0f} s, drawn to its end{behind}"
    hint = "; --insecure takes any certificate" if "ERR_CERT_" in str(failure) else ""
    return f"{failure}{hint}"


async def _take(visit: _Visit, out: Path, name: str, event: int | None) -> None:
    async with running_browser() as browser:
        page = await browser.page()
        if visit.is_insecure:
            await page.trust_anybody()
        for width, height in _SIZES:
            await page.open(visit.url, width, height, is_dark=visit.is_dark)
            await _be_let_in(page, visit.token)
            if event is not None:
                await page.until(f"document.querySelectorAll('.events button').length >= {event}")
                facts = await page.value("document.getElementById('facts').innerText")
                await page.value(f"document.querySelectorAll('.events button')[{event - 1}].click()")
                await page.until(f"document.getElementById('facts').innerText !== {json.dumps(facts)} && {IS_DRAWN}")
            path = out / f"{name}{'-dark' if visit.is_dark else ''}-{width}.png"
            await asyncio.to_thread(path.write_bytes, await page.picture())
            print(path)


async def _be_let_in(page: BrowserPage, token: str | None) -> None:
    """Wait until the page is drawn; where it asks who looks, sign in.

    Raises:
        BrowserError: it asks, and there is no token, or it does not take it.
    """
    await page.until(f"({IS_DRAWN}) || ({IS_ASKED_WHO})")
    if not await page.value(IS_ASKED_WHO):
        return
    if token is None:
        raise BrowserError("the page asks who looks; --token-file signs in")
    form = "document.querySelector('#sign-in form')"
    await page.value(f"{form}.elements.token.value = {json.dumps(token)}; {_SAYS}.textContent = ''")
    await page.value(f"{form}.requestSubmit(); 0")
    # The words of a refusal, or true.
    reached = await page.until(f"{_SAYS}?.innerText || !!({IS_DRAWN})")
    if reached is not True:
        raise BrowserError(f"the page does not let in: {reached}")


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/screenshots")
