"""`quorate snapshot save`: the state of a running cluster in one file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from quorate.scripts.cli.logs.log_rights import naming_all_rights
from quorate.scripts.cli.snapshot.saved_file import part_of, write_saved
from quorate.scripts.cli.snapshot.saving import take_state
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import counted, show
from quorate.scripts.terminal.progress.bytes_read import arriving_bytes


class Saved(BaseModel):
    """A file that was saved, in the output for programs. Every field is always there."""

    model_config = ConfigDict(frozen=True)

    path: str
    cluster_id: str
    #: Exclusive end of the committed log that the state is that of, and the epoch there.
    end_offset: int
    epoch: int
    #: Of the whole file.
    size: int
    #: Of the state, 64 hexadecimal digits.
    digest: str
    #: The controller that gave it.
    node_id: int
    #: Controllers whose own state at this offset was asked for, and is the same.
    agreeing: list[int]
    #: Bytes that came over the network, and the seconds that all of it took.
    received_bytes: int
    took_s: float


def save_file(
    file: Path, controllers: str | None, secret_file: Path | None, *, may_replace: bool, cluster_id: str | None = None
) -> Saved:
    """Save the newest committed state, verified, under a name that it has only when it is whole.

    Args:
        cluster_id: the cluster that it must be of; None: any.

    Raises:
        NotSaved: the controllers are of another cluster.
        NotWritten: the file cannot be made. Else as ``take_state`` and ``ask``. Nothing has the name then that had not
            before.
    """
    begun, received = time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal received
        received += more
        advance(more)

    with part_of(file, may_replace=may_replace) as part, arriving_bytes(f"saving {file.name}") as advance:
        with naming_all_rights():
            taken = ask(controllers, secret_file, lambda client: take_state(client, count, cluster_id))
        saved = write_saved(part, taken, time.time_ns() // 1_000_000)
    return Saved(
        path=str(file),
        cluster_id=saved.cluster_id,
        end_offset=saved.id.end_offset,
        epoch=saved.id.epoch,
        size=file.stat().st_size,
        digest=saved.digest.hex(),
        node_id=taken.source.node_id,
        agreeing=list(taken.agreeing),
        received_bytes=received,
        took_s=round(time.monotonic() - begun, 3),
    )


def save(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make, of any name.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Let it take the place of a file that is there.")] = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Save the newest committed state of a running cluster in a file of this machine.

    Any of the --controllers gives it, active or not; nothing is written there, and commits go on. It is read as brokers
    read the log, so who asks needs CLUSTER_ACTION on Cluster, and DESCRIBE. The file has credentials in it: its mode is
    600. It is written as FILE.part, synced, read back, checked whole and held against the digests of the controllers,
    and has its name only then. `snapshot verify`, `show` and `restore` read it, as does all that takes --from.

    Exit code 1: refused, or the disk is full; 3: no controller answers. FILE is then what it was before.

    Examples:

      quorate snapshot save before-the-upgrade.checkpoint

      quorate snapshot verify before-the-upgrade.checkpoint
    """
    saved = save_file(file, controllers, secret_file, may_replace=force)
    show(saved, _lines(saved), as_json=as_json)


def _lines(saved: Saved) -> Iterator[str]:
    yield f"Saved {saved.path}: {described(saved)}."
    yield f"  digest {saved.digest}, {agreement(saved)}"
    rate = f"{saved.received_bytes / max(saved.took_s, 0.001) / 1_000_000:.1f} MB/s"
    yield f"  {saved.received_bytes} bytes came from controller {saved.node_id} in {saved.took_s:.1f} s ({rate})"


def described(saved: Saved) -> str:
    """The state that a file has, in words."""
    return f"cluster {saved.cluster_id}, state at offset {saved.end_offset} (epoch {saved.epoch}), {saved.size} bytes"


def agreement(saved: Saved) -> str:
    """The controllers that have the same state, in words."""
    if not saved.agreeing:
        return "which no controller had to compare any more"
    names = ", ".join(map(str, saved.agreeing))
    return f"the same as of {counted(len(saved.agreeing), 'controller')} ({names})"
