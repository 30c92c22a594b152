"""`quorate page`: the web page of controllers, served from files of a log, with its whole past."""

from __future__ import annotations

import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.controller.api.models import MomentParameters
from quorate.controller.http.page.routes import PAGE_ROUTES
from quorate.controller.http.routes.answers import ANSWER_ROUTES
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route
from quorate.controller.http.serving import HttpServer
from quorate.scripts.cli.page.file_past import FilePast
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import files_not_address
from quorate.scripts.terminal.offline import still_node

_HOST: Final = "127.0.0.1"
#: Requests that are under way when it is ended.
_GRACE_S: Final = 1.0


def show_page(
    from_path: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Metadata directory, segment or checkpoint, Quorate's or Kafka's, that nobody writes to.",
            callback=files_not_address,
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback; 0: one that is free.")] = 0,
) -> None:
    """Serve the web page of a log in files, with its timeline, read-only on loopback, until Ctrl-C.

    A running cluster needs no command: every controller has the page at /. Of files it shows the state at their end,
    and any moment that they reach back to. No controller is asked, and nothing is written.

    Example: quorate page --from backup/controller-1
    """
    try:
        asyncio.run(_serve(from_path, port))
    except OSError as error:
        sys.stderr.write(f"quorate: port {port} cannot be used: {error}\n")
        raise typer.Exit(exit_codes.REFUSED) from error


async def _serve(path: Path, port: int) -> None:
    node = still_node(path, None)
    node = replace(node, past=FilePast(path))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    server = await HttpServer.start(node, _HOST, port, _GRACE_S, _page_routes())
    try:
        print(f"quorate: the page of {path} is at http://{_HOST}:{server.port}/ until Ctrl-C", flush=True)
        await ended.wait()
    finally:
        await server.close()


def _page_routes() -> tuple[Route, ...]:
    """The page, and the reads that can be answered from a log: all that take a moment, and the timeline."""
    from_log = (route for route in ROUTES if route.method == "GET" and issubclass(route.parameters, MomentParameters))
    timeline = (route for route in ANSWER_ROUTES if route.path == "/v1/answers/timeline")
    return (*PAGE_ROUTES, *from_log, *timeline)
