"""`quorate broker`: a process that plays one broker or many, until it is told to stop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from quorate.broker.host import BrokerReadiness, NotCaughtUp
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.process import run_broker_process
from quorate.broker.settings import BrokerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.process_log import configure_log

Ids = Annotated[
    str | None, typer.Option(metavar="IDS", help="Brokers to play: ids and ranges, like 11-14,20.", show_default=False)
]
Controllers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,...", help="HTTP addresses of controllers; any of them will do.", show_default=False
    ),
]
Racks = Annotated[
    str | None,
    typer.Option(metavar="RACK,...", help="Racks in the order of --ids, or one for all.", show_default=False),
]
Imported = Annotated[
    bool,
    typer.Option(
        "--imported",
        help="For twins: as they are registered in the metadata. Those alive there go on, those dead there come back. "
        "With --set last_run_file=FILE those that have run here and crashed come back, too.",
    ),
]
Config = Annotated[Path | None, typer.Option(help="TOML file with settings.", show_default=False)]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")
]


def broker(
    ids: Ids = None,
    controllers: Controllers = None,
    racks: Racks = None,
    imported: Imported = False,
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Play brokers: register, follow the metadata log, heartbeat, lead and follow without any data.

    Rehearsal brokers: they do a broker's part of the protocol, and no data are moved.
    Settings come from --config, then from QUORATE_BROKER_... variables, then from --set and the other options.
    SIGTERM and Ctrl-C hand leaderships over and stop; a second one stops at once.
    Exit code 0: all brokers left in order; 1: one failed, or the log cannot be replayed;
    3: no controller could be followed; 4: one left without the controller's word.

    Example: quorate broker --ids 11-14 --controllers 127.0.0.1:18081,127.0.0.1:18083 --racks a,b,a,b
    """
    options = {"ids": ids, "controllers": controllers, "racks": racks}
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    if imported:
        given.append("is_imported=true")
    settings = load_settings(BrokerSettings, config, [*(overrides or ()), *given])
    configure_log(settings.logging.level, settings.logging.format)
    try:
        ended = uvloop.run(run_broker_process(settings))
    except NotCaughtUp as error:
        sys.stderr.write(f"quorate: {error}\n")
        raise typer.Exit(exit_codes.UNREACHABLE) from error
    raise typer.Exit(_exit_code(ended))


def _exit_code(ended: Sequence[BrokerReadiness]) -> int:
    failed = [broker for broker in ended if broker.state is LifecycleState.FAILED]
    for broker in failed:
        sys.stderr.write(f"quorate: {broker.trouble}\n")
    if failed:
        return exit_codes.REFUSED
    return exit_codes.DONE if all(broker.is_clean_stop for broker in ended) else exit_codes.OUTCOME_UNKNOWN
