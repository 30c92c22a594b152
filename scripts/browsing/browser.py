"""The Chromium of this machine, over the DevTools protocol: pages of given sizes, keys, questions, pictures.

No browser is fetched, and no library for one: a web socket is all that the protocol takes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: For a start, a page or an answer. A browser on a machine that has other things to do is slow.
PATIENCE_S: Final = 60.0
#: Keys that are pressed by name: their code, and the text that they make.
_KEYS: Final = {
    "Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "End": (35, ""), "Home": (36, ""), "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
}  # fmt: skip
#: A page wider than this is none of a phone.
_PHONE_WIDTH: Final = 600


class BrowserError(Exception):
    """The browser does not start, or refuses what it is told."""


def find_browser() -> str | None:
    """Path of a browser that can be told what to do; None: this machine has none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class BrowserPage:
    """One page. Everything that its browser complains of or asks the network for is noted."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self._loaded = asyncio.Event()
        #: Errors and warnings of scripts, of the content policy, and of files that did not come.
        self.complaints: list[str] = []
        #: Addresses.
        self.asked: list[str] = []

    async def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command of the protocol.

        Raises:
            BrowserError: the browser refuses.
        """
        return await self._browser.tell(method, parameters, self._session)

    async def open(self, url: str, width: int, height: int, *, is_dark: bool = False) -> None:
        """Show an address in a window of so many pixels.

        Raises:
            BrowserError: nothing comes from there, or the browser does not trust its certificate.
        """
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.tell(f"{domain}.enable")
        is_phone = width < _PHONE_WIDTH
        await self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
        )
        # Nothing is caught on its way from one colour to another.
        media = {"prefers-color-scheme": "dark" if is_dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in media.items()]
        await self.tell("Emulation.setEmulatedMedia", features=features)
        self._loaded.clear()
        went = await self.tell("Page.navigate", url=url)
        if went.get("errorText"):
            raise BrowserError(went["errorText"])
        async with asyncio.timeout(PATIENCE_S):
            await self._loaded.wait()

    async def trust_anybody(self) -> None:
        """Take any certificate: that of a cluster's own authority, of which no browser knows."""
        await self.tell("Security.setIgnoreCertificateErrors", ignore=True)

    async def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript; of a promise what it comes to.

        Raises:
            BrowserError: it throws.
        """
        found = await self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression[:200]}: {found['exceptionDetails']}")
        return found["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The first value of an expression that is none of false, null, 0 or empty."""
        look = "try { value = (EXPR); } catch { value = null; } if (value) done(value); else setTimeout(look, 50);"
        look = look.replace("EXPR", expression)
        return await self.value(f"new Promise((done) => {{ const look = () => {{ let value; {look} }}; look(); }})")

    async def press(self, key: str) -> None:
        """One key, down and up."""
        code, text = _KEYS[key]
        for kind in ("keyDown", "keyUp"):
            typed = text if kind == "keyDown" else ""
            await self.tell(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=typed
            )

    async def picture(self) -> bytes:
        """All of the page, also what lies below the window, as PNG."""
        size = (await self.tell("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        taken = await self.tell("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(taken["data"])

    def note(self, method: str, told: dict[str, Any]) -> None:
        """Take in what the browser says unasked."""
        if method == "Page.loadEventFired":
            self._loaded.set()
        elif method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(f"{details['text']} {details.get('exception', {}).get('description', '')}")
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([one.get("value", one.get("description")) for one in told["args"]]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")


class Browser:
    """A browser that runs, and its pages."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, BrowserPage] = {}

    async def page(self) -> BrowserPage:
        """A page that shows nothing yet."""
        target = (await self.tell("Target.createTarget", {"url": "about:blank"}))["targetId"]
        session = (await self.tell("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"]
        self._pages[session] = BrowserPage(self, session)
        return self._pages[session]

    async def tell(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        """The answer to one command of the protocol.

        Raises:
            BrowserError: the browser refuses. TimeoutError: it does not answer.
        """
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message if session is None else {**message, "sessionId": session})
        async with asyncio.timeout(PATIENCE_S):
            answer = await self._waiting[number]
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def hear(self) -> None:
        """Take in what the browser says, until it ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._waiting.pop(told["id"]).set_result(told)
            elif (page := self._pages.get(told.get("sessionId", ""))) is not None:
                page.note(told["method"], told["params"])


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    """A browser of its own, with nothing kept from before; it ends with the context.

    Raises:
        BrowserError: this machine has none, or it does not start.
    """
    path = find_browser()
    if path is None:
        raise BrowserError(f"no browser is installed: none of {', '.join(_NAMES)} is there")
    with TemporaryDirectory(prefix="quorate-browser-", ignore_cleanup_errors=True) as kept:
        flags = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={kept}", "--disable-gpu"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
        # As root its sandbox cannot be made; it shows nothing but pages of ours.
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []
        environment = {**os.environ, "TMPDIR": kept}  # what it does not take away itself goes with its profile
        process = await asyncio.create_subprocess_exec(
            path, *flags, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, env=environment
        )
        try:
            address = await _address(process)
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
                browser = Browser(socket)
                async with asyncio.TaskGroup() as tasks:
                    hearing = tasks.create_task(browser.hear())
                    try:
                        yield browser
                    finally:
                        hearing.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Of its web socket, which it says on standard error."""
    assert process.stderr is not None
    said = ""
    async with asyncio.timeout(PATIENCE_S):
        async for line in process.stderr:
            text = line.decode(errors="replace")
            if text.startswith("DevTools listening on "):
                return text.removeprefix("DevTools listening on ").strip()
            said = text
    raise BrowserError(f"the browser does not start: {said.strip()}")
