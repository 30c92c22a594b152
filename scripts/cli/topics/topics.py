"""`quorate topics`: what topics there are, and making, growing and deleting them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.api.resources import PartitionsReply, TopicsReply, TopicSummary
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DescribedPartition,
    TopicConfig,
)
from quorate.controller.protocol.types import UuidField
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.moves.replication_factor import set_replication_factor
from quorate.scripts.cli.option_groups import command_of
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.cli.topics.missing_topics import NoSuchTopic, asked_about, no_such_topic, say_what_is_not_there
from quorate.scripts.cli.topics.partition_rows import PARTITION_HEADINGS, RARE_HEADINGS, partition_row
from quorate.scripts.cli.topics.topic_creation import create
from quorate.scripts.cli.topics.topic_deletions import deletions
from quorate.scripts.logins.nobody import say_what_is_hidden
from quorate.scripts.terminal.arguments import (
    LIMIT_DEFAULT,
    AsJson,
    Assignment,
    AtMinIsr,
    Broker,
    DryRun,
    Leader,
    Limit,
    NotPreferred,
    Offline,
    Patterns,
    PlanTo,
    Reassigning,
    Topics,
    UnderMinIsr,
    UnderReplicated,
    Yes,
    confirm,
    exact_names,
    patterns_text,
    replica_lists,
    wanted_parameters,
)
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.bulk import ItemOutcome, exit_by, only, report
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import reader_may_leave, show
from quorate.scripts.terminal.paging import Wanted, all_partitions, all_topics, say_if_more, topics_named
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.tables import Wide, table

_HEADS: Final = ("TOPIC", "PARTITIONS", "MATCHING", "REPLICAS", "CONFIGS")
#: Of topics that are to be deleted.
_NAMES_SHOWN: Final = 10

app = typer.Typer(help="List, describe, create, grow and delete topics.", no_args_is_help=True)
app.command()(deletions)
app.command()(command_of(set_replication_factor))
app.command()(create)

WithOverrides = Annotated[bool, typer.Option("--with-overrides", help="With configs of their own.")]


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
    with_overrides: WithOverrides = False,
    limit: Limit = LIMIT_DEFAULT,
    wide: Wide = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List topics, all or those with a partition in one of the states asked for.

    Example: quorate topics list 'orders*' --under-replicated
    """
    wanted = wanted_parameters(
        patterns_text(topics), broker, leader,
        under_replicated=under_replicated, offline=offline, under_min_isr=under_min_isr, at_min_isr=at_min_isr,
        not_preferred=not_preferred, reassigning=reassigning,
    )  # fmt: skip
    is_filtered = len(wanted) > 1
    wanted |= _overrides(with_overrides)

    async def question(client: ControllerClient) -> TopicsReply:
        found = await all_topics(client, wanted, limit)
        await say_what_is_not_there(client, topics, (topic.name for topic in found.topics))
        return found

    found = ask(controllers, secret_file, question, path=from_path, at=at)
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(found) + "\n")
            return
        sys.stdout.writelines(f"{line}\n" for line in _table(found.topics, is_filtered=is_filtered, wide=wide))
    say_if_more(len(found.topics), found.matching)
    say_what_is_hidden(found.shown_to, is_empty=not found.topics)


def _table(topics: Sequence[TopicSummary], *, is_filtered: bool, wide: bool) -> list[str]:
    """``is_filtered``: whether only some partitions were asked for, so that it matters how many of a topic are such."""
    rows = (
        (
            one.name, str(one.partitions), str(one.matching_partitions) if is_filtered or wide else "",
            str(one.replication_factor), _configs(one),
        )
        for one in topics
    )  # fmt: skip
    return table(_HEADS, rows, wide=wide, may_hide=("MATCHING", "CONFIGS"))


def _overrides(is_wanted: bool) -> dict[str, str | int]:
    return {"with_overrides": "true"} if is_wanted else {}


def _configs(topic: TopicSummary) -> str:
    return ",".join(f"{one.name}={'(hidden)' if one.value is None else one.value}" for one in topic.configs) or "-"


class TopicDescription(BaseModel):
    """A topic in the output for programs."""

    model_config = ConfigDict(frozen=True)

    name: str
    topic_id: UuidField
    partition_count: int
    replication_factor: int
    configs: list[TopicConfig]
    #: Those that fit what was asked for.
    partitions: list[DescribedPartition]


class TopicDescriptions(BaseModel):
    """All that was found, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    state_offset: int
    #: Partitions that fit.
    matching: int
    topics: list[TopicDescription]
    #: The principal that is shown only topics that it may describe; null: all are shown.
    shown_to: str | None


@app.command()
def describe(
    topics: Patterns = None,
    under_replicated: UnderReplicated = False,
    offline: Offline = False,
    under_min_isr: UnderMinIsr = False,
    at_min_isr: AtMinIsr = False,
    not_preferred: NotPreferred = False,
    reassigning: Reassigning = False,
    broker: Broker = None,
    leader: Leader = None,
    with_overrides: WithOverrides = False,
    limit: Limit = LIMIT_DEFAULT,
    wide: Wide = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show topics with their configs and partitions, all or those in one of the states asked for.

    A topic that is named and not there is refused. --limit is about partitions.

    Example: quorate topics describe orders
    """
    wanted = wanted_parameters(
        patterns_text(topics), broker, leader,
        under_replicated=under_replicated, offline=offline, under_min_isr=under_min_isr, at_min_isr=at_min_isr,
        not_preferred=not_preferred, reassigning=reassigning,
    )  # fmt: skip

    async def question(client: ControllerClient) -> TopicDescriptions:
        await _check_known(client, topics)
        found = await all_topics(client, wanted | _overrides(with_overrides), limit)
        return _described(found, await all_partitions(client, wanted, limit))

    described = ask(controllers, secret_file, question, path=from_path, at=at)
    show(described, _description(described.topics, wide=wide), as_json=as_json)
    shown = sum(len(topic.partitions) for topic in described.topics)
    if not as_json:
        if not with_overrides:
            say_if_more(shown, described.matching)
        say_what_is_hidden(described.shown_to, is_empty=not described.topics)


async def _check_known(client: ControllerClient, patterns: list[str] | None) -> None:
    names = exact_names(patterns)
    missing = set(names) - set(await topics_named(client, names))
    if missing:
        raise await no_such_topic(client, missing)


def _described(found: TopicsReply, partitions: PartitionsReply) -> TopicDescriptions:
    by_id = {topic.topic_id: topic.partitions for topic in partitions.topics}
    described = [
        TopicDescription(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_count=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=topic.configs,
            partitions=by_id.get(topic.topic_id, []),
        )
        for topic in found.topics
    ]
    return TopicDescriptions(
        state_offset=found.state_offset, matching=partitions.matching, topics=described, shown_to=found.shown_to
    )


def _description(topics: Iterable[TopicDescription], *, wide: bool) -> Iterator[str]:
    for place, topic in enumerate(topics):
        if place:
            yield ""
        yield (
            f"{topic.name}  id {uuid_text(topic.topic_id)}  partitions {topic.partition_count}  "
            f"replication factor {topic.replication_factor}"
        )
        for config in topic.configs:
            yield f"  {config.name}={'(hidden)' if config.value is None else config.value}"
        if topic.partitions:
            rows = map(partition_row, topic.partitions)
            lines = table(PARTITION_HEADINGS, rows, wide=wide, may_hide=RARE_HEADINGS)
            yield from (f"  {line}" for line in lines)


@app.command("add-partitions")
def add_partitions(
    topics: Topics,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, max=2**31 - 1, metavar="N", help="As many as it is to have then.")
    ],
    replica_assignment: Assignment = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Let topics grow. A topic never shrinks, and its keys are redistributed over all partitions.

    --replica-assignment is about the new partitions.

    Example: quorate topics add-partitions orders --partitions 12
    """
    assignments = None if replica_assignment is None else replica_lists(replica_assignment)
    wanted = [
        CreatePartitionsTopic(name=name, count=partitions, assignments=assignments) for name in dict.fromkeys(topics)
    ]
    request = CreatePartitionsRequest(topics=wanted, validate_only=dry_run or plan is not None)

    async def question(client: ControllerClient) -> CreatePartitionsResponse:
        return await asked_about(client, topics, lambda asked: asked.create_partitions(request))

    reply = ask(controllers, secret_file, question, about=only(topics))
    verb = "can have" if request.validate_only else "has"
    outcomes = [
        ItemOutcome(one.name, one.error_code, one.error_message, f"Topic {one.name} {verb} {partitions} partitions.")
        for one in reply.results
    ]
    if plan is None:
        report(reply, outcomes, as_json=as_json)
        return
    exit_by(outcomes)
    change = PlannedChange(create_partitions=CreatePartitionsRequest(topics=wanted))
    write_plan(plan, "topics add-partitions", [change], controllers, secret_file)


@app.command()
def delete(
    topics: Topics,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Do nothing where there is none.")] = False,
    plan: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Delete topics with all that is in them. This cannot be undone.

    Example: quorate topics delete 'test-*'
    """
    wanted: Wanted = {"names": patterns_text(topics)}

    async def find(client: ControllerClient) -> TopicsReply:
        if not if_exists:
            await _check_known(client, topics)
        return await all_topics(client, wanted, RECORDS_PER_OPERATION_MAX)

    found = ask(controllers, secret_file, find)
    if found.matching > len(found.topics):
        raise NoSuchTopic(f"{found.matching} topics match: {RECORDS_PER_OPERATION_MAX} at once is the most")
    if not found.topics and not if_exists:
        raise NoSuchTopic("no topic matches")
    names = [topic.name for topic in found.topics]
    request = DeleteTopicsRequest(topic_ids=[topic.topic_id for topic in found.topics])
    if plan is not None:
        changes = [PlannedChange(delete_topics=request)] if names else []
        write_plan(plan, "topics delete", changes, controllers, secret_file, if_none="No topic matches.")
        return
    if names:
        confirm(f"delete {_named(names)} for good", yes=yes)
    reply = ask(controllers, secret_file, lambda client: client.delete_topics(request), about=only(names))
    by_id = {topic.topic_id: topic.name for topic in found.topics}
    outcomes = [
        ItemOutcome(by_id[one.topic_id], one.error_code, one.error_message, f"Topic {by_id[one.topic_id]} was deleted.")
        for one in reply.responses
    ]
    report(reply, outcomes, as_json=as_json)


def _named(topics: list[str]) -> str:
    """One by its name, several by their number and names."""
    if len(topics) == 1:
        return f"topic {topics[0]}"
    more = f" and {len(topics) - _NAMES_SHOWN} more" if len(topics) > _NAMES_SHOWN else ""
    return f"{len(topics)} topics ({', '.join(topics[:_NAMES_SHOWN])}{more})"
