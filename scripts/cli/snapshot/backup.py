"""`quorate backup`: a dated file of a running cluster's state, and the oldest ones go. For timers."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from quorate.scripts.cli.snapshot.rotation import look, name_at, remove_oldest
from quorate.scripts.cli.snapshot.save import Saved, agreement, described, save_file
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import show


class BackedUp(Saved):
    """A backup, in the output for programs."""

    #: Names of those that were removed, oldest first.
    removed: list[str]
    #: How many are there now.
    kept: int


def backup(
    directory: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="DIR",
            help="A directory of backups, and of nothing else; made if missing.",
            show_default=False,
        ),
    ],
    keep: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="How many are left, the new one included.")
    ] = 14,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Save the state of a running cluster in a dated file, and remove the oldest ones. For cron and systemd timers.

    Each run makes one file, quorate-YYYYMMDDTHHMMSSZ.checkpoint (UTC), as `quorate snapshot save` does, and only when
    that is verified do the oldest go. A directory with anything else in it, or with backups of another cluster, is
    refused. A file that was damaged meanwhile is named on standard error, does not count, and stays.

    One line on standard output. Exit code 0: there is a new, verified backup; 1: refused, or the disk is full; 3: no
    controller answers. Unless it is 0 no backup was removed.

    Examples:

      quorate backup --to /var/backups/quorate --keep 14

      quorate snapshot verify /var/backups/quorate/quorate-20260131T030000Z.checkpoint
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = look(directory)
    for sentence in before.damaged:
        sys.stderr.write(f"quorate: {sentence}; it does not count as a backup, and is left alone\n")
    file = directory / name_at(time.time())
    saved = save_file(file, controllers, secret_file, may_replace=False, cluster_id=before.cluster_id)
    removed = remove_oldest(before, file, keep)
    reply = BackedUp(
        **saved.model_dump(), removed=[path.name for path in removed], kept=len(before.whole) + 1 - len(removed)
    )
    show(reply, [_line(reply)], as_json=as_json)


def _line(reply: BackedUp) -> str:
    return (
        f"Backup {reply.path}: {described(reply)}, digest {reply.digest}, {agreement(reply)};"
        f" {len(reply.removed)} removed, {reply.kept} kept."
    )
