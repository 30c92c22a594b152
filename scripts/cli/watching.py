"""`quorate watching`: what Prometheus and Grafana are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.new_files import open_new
from quorate.scripts.watching.files import FILES, content

app = typer.Typer(help="Alert rules and a scrape config for Prometheus, a dashboard for Grafana.", no_args_is_help=True)


class NotExported(QuorateError):
    """A file is in the way, or the disk takes none: one sentence."""


@app.callback()
def _commands() -> None:
    """Keeps the command's name necessary, of which there is one."""


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write them; made if it is not there.")],
    is_replacing: Annotated[
        bool, typer.Option("--replace", help="Write over files of these names, as after an upgrade.")
    ] = False,
) -> None:
    """Write the rules, the scrape config and the dashboard of this release to a directory.

    Files of the same names are left alone, and nothing is written, unless `--replace` is said.
    docs/watching.md says what each rule means and what Prometheus needs to be let in.

    Example: quorate watching export monitoring
    """
    in_the_way = [name for name in FILES if (directory / name).exists()]
    if in_the_way and not is_replacing:
        raise NotExported(f"{directory} holds {', '.join(in_the_way)} already: say --replace to write over them")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, use in FILES.items():
            _write(directory / name, content(name))
            typer.echo(f"{directory / name}: {use}")
    except OSError as error:
        where = error.filename or directory
        raise NotExported(f"{where} cannot be written: {error.strerror or error}") from error


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, for whoever reads it meanwhile."""
    part = path.with_name(f".{path.name}.part")
    with open_new(part) as file:
        file.write(data)
    part.replace(path)
