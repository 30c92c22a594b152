"""`quorate image`: what a metadata log or checkpoint adds up to."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from quorate.metadata_log.records.hidden_values import IsSecret, shown_data
from quorate.metadata_log.records.json_form import json_type
from quorate.scripts.cli.logs.image_diff import diff
from quorate.scripts.terminal.connecting import AtMoment, files_not_address
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.scripts.terminal.passed_over import load_image_and_say, passed_over_documents
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.terminal.secrets_shown import ShowSecrets, secrets_rule
from quorate.scripts.terminal.tables import columns
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.views.as_json import summary_json, topics_json
from quorate.snapshots.views.summary import ImageSummary, summarize

app = typer.Typer(
    help="The state that a log or a checkpoint adds up to; what differs between two.", no_args_is_help=True
)
app.command()(diff)


@app.command()
def show(
    path: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A metadata directory, a segment or a checkpoint.",
            callback=files_not_address,
            show_default=False,
        ),
    ],
    at: AtMoment = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole state as JSON.")] = False,
    as_records: Annotated[
        bool, typer.Option("--records", help="The records of a snapshot, one JSON a line, as Kafka would write them.")
    ] = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Show the state at a moment, by default the end, from Quorate's or Apache Kafka's files.

    Starts from the newest whole checkpoint at or before it and replays the log behind it; a damaged one that is passed
    over is named.

    Example: quorate image show --from var/controller-1 --at 2000
    """
    require_one_form(as_json=as_json, as_records=as_records)
    image, passed_over = load_image_and_say(path, None if at is None else parse_moment(at))
    rule = secrets_rule(show_secrets=show_secrets)
    show_image(path, image, passed_over, rule, as_json=as_json, as_records=as_records)


def require_one_form(*, as_json: bool, as_records: bool) -> None:
    """Refuse what cannot be shown at once."""
    if as_json and as_records:
        raise typer.BadParameter("--json and --records exclude each other")


def show_image(
    path: Path,
    image: MetadataImage,
    passed_over: Iterable[PassedOver],
    is_secret: IsSecret,
    *,
    as_json: bool,
    as_records: bool,
) -> None:
    """Write a state to the output, in one of three forms."""
    with reader_may_leave():
        if as_json:
            sys.stdout.writelines(_json_lines(image, passed_over, is_secret))
        elif as_records:
            sys.stdout.writelines(_record_lines(image, is_secret))
        else:
            _print_summary(Screen(soft_wrap=True), path, image)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_lines(image: MetadataImage, passed_over: Iterable[PassedOver], is_secret: IsSecret) -> Iterator[str]:
    """One top-level key a line, one topic a line."""
    yield "{\n"
    yield f'"digest":{_dumps(digest_image(image).text)},\n'
    yield f'"passed_over":{_dumps(passed_over_documents(passed_over))},\n'
    for key, value in summary_json(image, is_secret).items():
        yield f"{_dumps(key)}:{_dumps(value)},\n"
    yield '"topics":{'
    separator = "\n"
    for name, topic in topics_json(image):
        yield f"{separator}{_dumps(name)}:{_dumps(topic)}"
        separator = ",\n"
    yield "\n}}\n"


def _record_lines(image: MetadataImage, is_secret: IsSecret) -> Iterator[str]:
    for record, version in image_records(image):
        row = {"type": json_type(record), "version": version, "data": shown_data(record, version, is_secret)}
        yield _dumps(row) + "\n"


def _print_summary(console: Screen, path: Path, image: MetadataImage) -> None:
    summary = summarize(image)
    provenance = image.provenance
    console.print(Text(str(path), style="bold"))
    console.print(
        f"State at offset {provenance.end_offset} (epoch {provenance.epoch}, {format_time(provenance.log_time_ms)})"
    )
    console.print(f"Digest: {digest_image(image).text}")
    levels = {**image.features.levels, **({"kraft.version": image.kraft.version} if image.kraft.version else {})}
    console.print("Features: " + (", ".join(f"{name} {level}" for name, level in sorted(levels.items())) or "none"))
    console.print(f"Controllers: {_controllers(image)}")
    for line in _brokers_table(image, summary):
        console.print(line)
    console.print(_partitions_line(image, summary))
    for line in _troubles(summary):
        console.print(Text(f"  {line}", style="yellow"))
    console.print(f"Also kept: {_also_kept(image)}")


def _controllers(image: MetadataImage) -> str:
    if image.kraft.voters is not None:
        return "voters " + ", ".join(str(voter.voter_id) for voter in image.kraft.voters.voters) + " (in the log)"
    registered = sorted(image.cluster.controllers)
    return ", ".join(map(str, registered)) + " (registered)" if registered else "none registered"


def _brokers_table(image: MetadataImage, summary: ImageSummary) -> list[str]:
    rows = []
    for broker_id, load in summary.brokers.items():
        broker = image.cluster.brokers.get(broker_id)
        rack, epoch = ("-", "-") if broker is None else (broker.rack or "-", str(broker.epoch))
        numbers = map(str, (load.replicas, load.in_sync, load.leaders))
        rows.append((str(broker_id), rack, _broker_state(broker), epoch, *numbers))
    return columns([("BROKER", "RACK", "STATE", "EPOCH", "REPLICAS", "IN-SYNC", "LEADS"), *rows]) if rows else []


def _broker_state(broker: BrokerRegistration | None) -> str:
    if broker is None:
        return "not registered"
    if broker.is_fenced:
        return "fenced, shut down" if broker.in_controlled_shutdown else "fenced"
    return "shutting down" if broker.in_controlled_shutdown else "active"


def _partitions_line(image: MetadataImage, summary: ImageSummary) -> str:
    return f"{len(image.topics):,} topics, {summary.partitions:,} partitions"


def _troubles(summary: ImageSummary) -> Iterator[str]:
    wordings = (
        (summary.without_leader, "without a leader"),
        (summary.under_replicated, "under-replicated"),
        (summary.with_elr, "with eligible leader replicas (ELR)"),
        (summary.recovering, "recovering from an unclean election"),
        (summary.reassigning, "being reassigned"),
        (summary.not_preferred, "not led by their preferred leader"),
    )
    for number, wording in wordings:
        if number:
            yield f"{number:,} {wording}"


def _also_kept(image: MetadataImage) -> str:
    configs = sum(len(values) for values in image.configs.resources.values())
    next_id = image.producer_ids.next_producer_id
    return ", ".join(
        (
            f"{configs:,} configs of {len(image.configs.resources):,} resources",
            f"{image.labels.count:,} labels",
            f"{len(image.client_quotas.entities):,} quota entities",
            f"{len(image.acls.entries):,} ACLs",
            f"{len(image.scram.credentials):,} SCRAM credentials",
            f"{len(image.delegation_tokens.tokens):,} delegation tokens",
            "no producer id handed out" if next_id is None else f"next producer id {next_id:,}",
        )
    )
