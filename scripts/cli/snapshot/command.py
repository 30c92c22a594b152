"""`quorate snapshot`: checkpoints of running controllers and in files: take, list, verify, show."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.errors import StorageError
from quorate.scripts.cli.logs import image
from quorate.scripts.cli.snapshot.export import export
from quorate.scripts.cli.snapshot.listing import TITLES, Listed, ListedCheckpoints, of_directory, table_rows
from quorate.scripts.cli.snapshot.restore import restore
from quorate.scripts.cli.snapshot.save import save
from quorate.scripts.cli.snapshot.taking import Taken, TakenCheckpoints, list_controllers, take_everywhere, take_first
from quorate.scripts.cli.snapshot.verification import CheckpointVerdict, CheckpointVerification
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile, files_not_address
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.passed_over import say_passed_over
from quorate.scripts.terminal.programs.documents import as_document, note_files
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.bytes_read import bytes_progress
from quorate.scripts.terminal.progress.line import telling
from quorate.scripts.terminal.secrets_shown import ShowSecrets, secrets_rule
from quorate.scripts.terminal.tables import columns
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver, WholeCheckpoint, first_whole

app = typer.Typer(help="Take, list, save, verify, show, restore and export checkpoints.", no_args_is_help=True)

app.command()(save)
app.command()(restore)
app.command()(export)

_AllControllers = Annotated[bool, typer.Option("--all", help="Every controller of the quorum, not the first one.")]


@app.command()
def take(
    everywhere: _AllControllers = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Let a controller write a checkpoint of its state now, and wait until it is durable.

    The first of the --controllers that answers takes it, active or not; with --all every controller of the quorum does.
    Commits go on meanwhile. Where the newest checkpoint covers everything already, none is written.

    Exit code 1: one was refused or failed; 3: a controller did not answer.

    Examples:

      quorate snapshot take --all

      quorate snapshot take --controllers 127.0.0.1:18083
    """
    with telling(lambda seconds: f"a checkpoint is being written, for {duration(seconds)}"):
        taken = ask(controllers, secret_file, take_everywhere if everywhere else take_first)
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(TakenCheckpoints(taken=taken)) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for one in taken for line in _taken_lines(one))
    for one in taken:
        if one.failure:
            sys.stderr.write(f"quorate: {one.url}: {one.failure}\n")
    if any(one.failure and one.is_reachable for one in taken):
        raise typer.Exit(exit_codes.REFUSED)
    if any(one.failure for one in taken):
        raise typer.Exit(exit_codes.UNREACHABLE)


def _taken_lines(taken: Taken) -> Iterator[str]:
    if taken.checkpoint is None:
        return
    what = "wrote a checkpoint" if taken.is_written else "has a checkpoint of everything already:"
    at = f"of the state at offset {taken.checkpoint.end_offset} (epoch {taken.checkpoint.epoch})"
    yield f"Controller {taken.node_id} {what} {at}, {taken.checkpoint.size} bytes."
    yield f"  digest {taken.checkpoint.digest or 'unknown'}"


@app.command(name="list")
def list_(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="A directory instead of a controller.",
            callback=files_not_address,
            show_default=False,
        ),
    ] = None,
    everywhere: _AllControllers = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List checkpoints, oldest first: of a running controller, or with --from in a metadata directory.

    The digest is that of the manifest beside the file: `verify` holds it against the content. In a directory every
    file's frame is checked; exit code 1 says that one is damaged.

    Examples:

      quorate snapshot list --all

      quorate snapshot list --from var/controller-1
    """
    if source is not None:
        listed = [of_directory(source)]
        note_files()
    else:
        listed = ask(controllers, secret_file, lambda client: list_controllers(client, all_of_them=everywhere))
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(ListedCheckpoints(places=listed)) + "\n")
        else:
            for one in listed:
                sys.stdout.writelines(f"{line}\n" for line in _listed_lines(one))
    for one in listed:
        for sentence in (*([f"{one.place}: {one.failure}"] if one.failure else ()), *one.damaged):
            sys.stderr.write(f"quorate: {sentence}\n")
    if any(one.damaged or one.failure for one in listed):
        raise typer.Exit(exit_codes.REFUSED)


def _listed_lines(listed: Listed) -> Iterator[str]:
    if listed.failure:
        return
    if listed.node_id is None:
        yield listed.place
    else:
        writing = "" if listed.writing_offset is None else f"; one of offset {listed.writing_offset} is being written"
        yield f"controller {listed.node_id}, {listed.place}, state at offset {listed.applied_offset}{writing}"
    rows = list(table_rows(listed))
    yield from (f"  {line}" for line in (columns([TITLES, *rows]) if rows else ["no checkpoint"]))


@app.command()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE_OR_DIR...", help="Checkpoints, or directories with them.", show_default=False),
    ],
    as_json: AsJson = False,
) -> None:
    """Check checkpoints whole: bytes, content, manifest, and against the log beside them.

    Every batch's CRC and place, header and footer, the replay of every record; whether the state obeys the rules of
    every state, as that leaders are in ISRs (the first ten that it breaks); whether the manifest belongs to these bytes
    and its digest is that of the content; and, where the log reaches back, whether it adds up to the same state.
    Exit code 1 if anything is wrong, with file, byte and offset.

    Examples:

      quorate snapshot verify var/controller-1

      quorate snapshot verify --json var/controller-1/__cluster_metadata-0/00000000000000002781-0000000001.checkpoint
    """
    verdicts = [verdict for path in paths for verdict in _verify(path)]
    with reader_may_leave():
        if as_json:
            sound = all(verdict.is_sound for verdict in verdicts)
            document = {"is_sound": sound, "checkpoints": [verdict.model_dump() for verdict in verdicts]}
            sys.stdout.write(json.dumps(document) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for verdict in verdicts for line in _verdict_lines(verdict))
    if not all(verdict.is_sound for verdict in verdicts):
        raise typer.Exit(exit_codes.REFUSED)


def _verify(path: Path) -> list[CheckpointVerdict]:
    verification = CheckpointVerification(path)
    with bytes_progress(f"checking {path.name}", verification.total_bytes) as advance:
        return verification.run(advance)


_MANIFEST_WORDS = {
    "same": "its digest is that of the content",
    "none": "there is none, as with checkpoints of Kafka",
    "damaged": "damaged",
    "different": "its digest is not that of the content",
    "unknown": "not judged: the checkpoint is damaged",
}
_LOG_WORDS = {
    "same": "adds up to the same state",
    "different": "adds up to another state",
    "out-of-reach": "does not reach it",
}


def _log_words(verdict: CheckpointVerdict) -> str:
    segments = Path(verdict.path).parent.glob("*.log")
    return _LOG_WORDS[verdict.log] if verdict.log != "out-of-reach" or any(segments) else "there is none"


def _verdict_lines(verdict: CheckpointVerdict) -> Iterator[str]:
    yield verdict.path
    at = "" if verdict.end_offset is None else f"state at offset {verdict.end_offset} (epoch {verdict.epoch}), "
    yield f"  {at}{verdict.size} bytes, digest {verdict.digest or 'unknown'}"
    if verdict.saved_ms is not None:
        yield f"  saved from cluster {verdict.cluster_id}, {format_time(verdict.saved_ms)}"
    yield f"  manifest: {_MANIFEST_WORDS[verdict.manifest]}"
    yield f"  log beside it: {_log_words(verdict)}"
    yield from (f"  note: {note}" for note in verdict.notes)
    yield from (f"  wrong: {finding}" for finding in verdict.findings)
    yield "  OK" if verdict.is_sound else "  DAMAGED"


@app.command()
def show(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE_OR_DIR", help="A checkpoint, or a directory: its newest whole one.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="The whole state as JSON.")] = False,
    as_records: Annotated[
        bool, typer.Option("--records", help="The records of a snapshot, one JSON a line, as Kafka would write them.")
    ] = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Show the state that a checkpoint holds, as `image show` does of a log.

    Example: quorate snapshot show var/controller-1
    """
    image.require_one_form(as_json=as_json, as_records=as_records)
    found: list[PassedOver] = []
    newest = _newest(path, found)
    say_passed_over(found)
    rule = secrets_rule(show_secrets=show_secrets)
    image.show_image(newest.file.path, newest.image, found, rule, as_json=as_json, as_records=as_records)


def _newest(path: Path, passed_over: list[PassedOver]) -> WholeCheckpoint:
    """The newest one that is whole."""
    checkpoints = [file for file in find_files(path) if file.is_checkpoint]
    if not checkpoints:
        raise StorageError(f"{path}: holds no checkpoint (*.checkpoint)")
    newest = first_whole(reversed(checkpoints), passed_over.append)
    if newest is None:
        raise StorageError("; ".join((f"{path}: holds no checkpoint that is whole", *map(str, passed_over))))
    return newest
