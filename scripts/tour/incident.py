"""`scripts/tour-incident`: the session of docs/tour-incident.md on a twin of a captured cluster, run again."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run
from quorate.scripts.tour.shell import BashShell
from quorate.scripts.tour.transcript import differences, parse, replayed

_ROOT: Final = Path(__file__).resolve().parents[2]
_DOCUMENT: Final = _ROOT / "docs" / "tour-incident.md"
#: The log that the session calls `kafka-metadata`: 2,808 partitions; one of four brokers was shut down.
_LOG: Final = _ROOT / "tests" / "data" / "kafka" / "static" / "m3" / "log"
#: Columns that tables and progress may take, and nothing else than text.
_SCREEN: Final = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def tour_incident(
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing: exit code 1 where something else is printed than stands there."),
    ] = False,
    base_port: Annotated[
        int | None,
        typer.Option(min=1024, max=65_000, help="Ports of the twin, from this one on; default: those of quorate up."),
    ] = None,
) -> None:
    """Run the session of docs/tour-incident.md again, and write down what it prints.

    What differs from what stands there is shown. Times, offsets, epochs, ids and addresses are others in every run.
    Takes about a minute: it is a cluster of seven processes.
    """
    written = parse(_DOCUMENT.read_text())
    with tempfile.TemporaryDirectory(prefix="quorate-incident-") as place:
        directory = Path(place)
        shutil.copytree(_LOG, directory / "kafka-metadata")
        with BashShell(directory, _environment(directory, base_port)) as shell:
            now = replayed(written, shell)
    found = differences(written, now)
    sys.stdout.writelines(f"{line}\n" for line in found)
    if not check:
        _DOCUMENT.write_text(now.text)
    elif found:
        raise typer.Exit(exit_codes.REFUSED)


def _environment(home: Path, base_port: int | None) -> dict[str, str]:
    """The environment of a newcomer's shell: no settings of Quorate's but for the ports."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("QUORATE_", "XDG_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ports = {} if base_port is None else {"QUORATE_BASE_PORT": str(base_port)}
    return {**inherited, "PATH": path, "HOME": str(home), **_SCREEN, **ports}


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/tour-incident")
