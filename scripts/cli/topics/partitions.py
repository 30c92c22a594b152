"""`quorate partitions`: the partitions of all topics, by what is wrong with them or where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.resources import PartitionsReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import DescribedPartition
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli.topics.missing_topics import meant_instead, say_what_is_not_there
from quorate.scripts.cli.topics.partition_rows import (
    PARTITION_HEADINGS,
    RARE_HEADINGS,
    directory_text,
    ids_text,
    leader_text,
    partition_row,
)
from quorate.scripts.logins.nobody import say_what_is_hidden
from quorate.scripts.terminal.arguments import (
    LIMIT_DEFAULT,
    AsJson,
    AtMinIsr,
    Broker,
    Leader,
    Limit,
    NotPreferred,
    Offline,
    Patterns,
    Reassigning,
    UnderMinIsr,
    UnderReplicated,
    patterns_text,
    topic_partitions,
    wanted_parameters,
)
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.paging import all_partitions, say_if_more, topics_described
from quorate.scripts.terminal.tables import Wide, columns, table

app = typer.Typer(
    help="List partitions by topic, broker, leader and state, and describe single ones.", no_args_is_help=True
)


class NoSuchPartition(QuorateError):
    """A partition that was named is not there."""


@app.command("list")
def list_(
    topics: Patterns = None,
    under_replicated: UnderReplicated = False,
    offline: Offline = False,
    under_min_isr: UnderMinIsr = False,
    at_min_isr: AtMinIsr = False,
    not_preferred: NotPreferred = False,
    reassigning: Reassigning = False,
    broker: Broker = None,
    leader: Leader = None,
    limit: Limit = LIMIT_DEFAULT,
    wide: Wide = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List partitions, all or those in one of the states asked for.

    Example: quorate partitions list --offline --under-min-isr --broker 12
    """
    wanted = wanted_parameters(
        patterns_text(topics), broker, leader,
        under_replicated=under_replicated, offline=offline, under_min_isr=under_min_isr, at_min_isr=at_min_isr,
        not_preferred=not_preferred, reassigning=reassigning,
    )  # fmt: skip

    async def question(client: ControllerClient) -> PartitionsReply:
        found = await all_partitions(client, wanted, limit)
        await say_what_is_not_there(client, topics, (topic.name or "" for topic in found.topics))
        return found

    found = ask(controllers, secret_file, question, path=from_path, at=at)
    rows = [(topic.name or "", *partition_row(one)) for topic in found.topics for one in topic.partitions]
    lines = table(("TOPIC", *PARTITION_HEADINGS), rows, wide=wide, may_hide=RARE_HEADINGS)
    show(found, lines, as_json=as_json)
    if not as_json:
        say_if_more(len(rows), found.matching)
        say_what_is_hidden(found.shown_to, is_empty=not rows)


class NamedPartition(BaseModel):
    """A partition in the output for programs."""

    model_config = ConfigDict(frozen=True)

    topic: str
    partition: DescribedPartition


class NamedPartitions(BaseModel):
    """In the order in which they were named."""

    model_config = ConfigDict(frozen=True)

    partitions: list[NamedPartition]


@app.command()
def describe(
    partitions: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC-NUMBER",
            help="Partitions, as orders-17.",
            autocompletion=completed_by(NameKind.PARTITIONS),
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show partitions in full, replica by replica.

    Example: quorate partitions describe orders-17
    """
    named = list(dict.fromkeys(topic_partitions(partitions)))

    async def question(client: ControllerClient) -> NamedPartitions:
        found = await topics_described(client, [topic for topic, _ in named])
        by_name = {(name, one.partition_index): one for name, topic in found.items() for one in topic.partitions}
        missing = [one for one in named if one not in by_name]
        if missing:
            texts = ", ".join(f"{topic}-{number}" for topic, number in missing)
            topic = missing[0][0]
            hint = "" if topic in found else await meant_instead(client, topic)
            raise NoSuchPartition(f"there is no partition {texts}{hint}")
        return NamedPartitions(partitions=[NamedPartition(topic=one[0], partition=by_name[one]) for one in named])

    described = ask(controllers, secret_file, question, path=from_path, at=at)
    lines = (line for one in described.partitions for line in _lines(one.topic, one.partition))
    show(described, lines, as_json=as_json)


def _lines(topic: str, one: DescribedPartition) -> Iterator[str]:
    recovery = "recovering" if one.leader_recovery_state else "recovered"
    yield (
        f"{topic}-{one.partition_index}  {one.state}  leader {leader_text(one.leader_id)} ({recovery})  "
        f"leader epoch {one.leader_epoch}  partition epoch {one.partition_epoch}"
    )
    yield (
        f"  ISR {ids_text(one.isr_nodes)}  ELR {ids_text(one.eligible_leader_replicas)}  "
        f"last known ELR {ids_text(one.last_known_elr)}"
    )
    rows = [("REPLICA", "STATE", "IN", "DIRECTORY")]
    for replica, state, directory in zip(one.replica_nodes, one.replica_states, one.directories, strict=True):
        sets = [
            ("leader", (one.leader_id,)),
            ("isr", one.isr_nodes),
            ("elr", one.eligible_leader_replicas),
            ("adding", one.adding_replicas),
            ("removing", one.removing_replicas),
        ]
        within = ",".join(name for name, ids in sets if replica in ids) or "-"
        rows.append((str(replica), state.removesuffix("Replica"), within, directory_text(directory)))
    yield from (f"  {line}" for line in columns(rows))
