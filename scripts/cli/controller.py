"""`quorate controller`: one controller process, until it is told to stop."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from quorate.controller.process.server import run_controller_process
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.process_log import configure_log


def controller(
    config: Annotated[Path | None, typer.Option(help="TOML file with settings.", show_default=False)] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")
    ] = None,
) -> None:
    """Run one voter of the quorum: it agrees on the log, follows or decides, and serves the HTTP API.

    Settings come from --config, then from QUORATE_CONTROLLER_... variables, then from --set; docs/configuration.md
    lists them. SIGTERM and Ctrl-C stop it in order, a second one at once. A fault that must not be survived ends the
    process with one sentence and exit code 70.

    Example: quorate controller --config controller-1.toml
    """
    settings = load_settings(ControllerSettings, config, overrides or ())
    configure_log(settings.logging.level, settings.logging.format)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_controller_process(settings))
    except OSError as error:
        sys.stderr.write(f"quorate: controller {settings.node_id}: {error}\n")
        raise typer.Exit(exit_codes.REFUSED) from error
