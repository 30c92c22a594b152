"""`quorate snapshot export`: directories that controllers of Apache Kafka start from."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.controller.engine.environment import new_uuid
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import uuid_from_text, uuid_text
from quorate.scripts.cli.snapshot.sources import Source, Target, left_lines, loaded, source_document
from quorate.scripts.cluster.kafka_export import ExportedVoter, ExportPlan, check_voters, voter_directory
from quorate.scripts.cluster.kafka_export import export as export_directories
from quorate.scripts.cluster.source_state import SourceState
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.connecting import AtMoment
from quorate.scripts.terminal.output import format_time
from quorate.snapshots.image_digest import digest_image

_VOTER: Final = re.compile(r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[^@:\s\[\]]+):(\d{1,5})(?::([\w-]{22}))?")


_Voters = Annotated[
    list[str],
    typer.Option(
        "--voter",
        metavar="ID@HOST:PORT[:DIRECTORY]",
        help="A controller that will start on one of the directories, as in Kafka's --initial-controllers; "
        "its directory id is made up where none is given. Repeat it for each.",
        show_default=False,
    ),
]
_Static = Annotated[
    bool, typer.Option("--static", help="Static voters (kraft.version 0): only Kafka's settings name them.")
]
_WithLog = Annotated[
    bool, typer.Option("--with-log", help="Keep the log from the newest checkpoint on, not the state alone.")
]
_ClusterId = Annotated[
    str | None, typer.Option("--cluster-id", metavar="ID", help="Default: that of the source.", show_default=False)
]


def export(
    source: Source,
    target: Target,
    voters: _Voters,
    at: AtMoment = None,
    static: _Static = False,
    with_log: _WithLog = False,
    cluster_id: _ClusterId = None,
    listener: Annotated[str, typer.Option("--listener", help="Name of the controllers' listener.")] = "CONTROLLER",
    as_json: AsJson = False,
) -> None:
    """Make directories that controllers of Apache Kafka 4 start from, one for each voter: TO/controller-ID.

    Each has meta.properties, bootstrap.checkpoint, and in __cluster_metadata-0 the checkpoint, with --with-log the log
    behind an older one, and quorum-state, in an epoch above every one in the source. Nothing of Quorate's own lies
    beside it. The source is only read: a stopped controller's directory, or a copy.

    Start the controllers with log.dirs (or metadata.log.dir) set to the directory, node.id as named here, and
    controller.quorum.bootstrap.servers, or with --static controller.quorum.voters.

    Keep the cluster id where brokers of this cluster are to go on under Kafka; never let both quorums run.

    Examples:

      quorate snapshot export --from var/controller-1 --to kafka --voter 1@127.0.0.1:9093

      quorate snapshot export --from var/controller-1 --to kafka --at 2000 --with-log --static
      --voter 1@k1:9093 --voter 2@k2:9093 --voter 3@k3:9093
    """
    named = tuple(_voter(text) for text in voters)
    check_voters(named)
    state = loaded(source, at)
    known_id = cluster_id or state.cluster_id
    if known_id is None:
        raise typer.BadParameter(f"{source} does not say to which cluster it belongs", param_hint="--cluster-id")
    plan = ExportPlan(known_id, named, static, listener)
    checkpoint_offset = export_directories(source, state, target, plan, with_log=with_log)
    if as_json:
        document = source_document(state) | _document(plan, target, checkpoint_offset)
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        kept_from = checkpoint_offset if with_log else None
        sys.stdout.writelines(f"{line}\n" for line in _lines(state, plan, target, kept_from))


def _document(plan: ExportPlan, target: Path, checkpoint_offset: int) -> dict[str, Any]:
    return {
        "cluster_id": plan.cluster_id,
        "is_static": plan.is_static,
        "checkpoint_offset": checkpoint_offset,
        "voters": [_voter_document(target, voter) for voter in plan.voters],
    }


def _lines(state: SourceState, plan: ExportPlan, target: Path, kept_from: int | None) -> Iterator[str]:
    provenance = state.image.provenance
    when = format_time(provenance.log_time_ms)
    yield f"Exported the state at offset {provenance.end_offset} (epoch {provenance.epoch}, {when})."
    yield f"  cluster {plan.cluster_id}, digest {digest_image(state.image).text}"
    if kept_from is not None:
        yield f"  the log from offset {kept_from} on is kept"
    yield from (f"  {line}" for line in left_lines(state))
    for voter in plan.voters:
        id_ = uuid_text(voter.directory_id)
        yield f"  voter {voter.id}@{voter.host}:{voter.port}:{id_}  {voter_directory(target, voter)}"


def _voter(text: str) -> ExportedVoter:
    match = _VOTER.fullmatch(text)
    if match is None or int(match[1]) >= 2**31 or not 0 < int(match[3]) < 65_536:
        raise typer.BadParameter(f"{text[:100]!r} is no voter: ID@HOST:PORT is wanted", param_hint="--voter")
    try:
        directory_id = uuid_from_text(match[4]) if match[4] else new_uuid()
    except InvalidId as error:
        raise typer.BadParameter(f"{text[:100]!r}: {error}", param_hint="--voter") from None
    return ExportedVoter(int(match[1]), match[2].strip("[]"), int(match[3]), directory_id)


def _voter_document(target: Path, voter: ExportedVoter) -> dict[str, Any]:
    return {
        "id": voter.id,
        "host": voter.host,
        "port": voter.port,
        "directory_id": uuid_text(voter.directory_id),
        "directory": str(voter_directory(target, voter)),
    }
