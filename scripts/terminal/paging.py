"""Lists that come in pages, followed to their end or to as many as are wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from quorate.controller.api.resources import PartitionsReply, TopicsReply, TopicSummary
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import DescribedTopic
from quorate.controller.reads.name_patterns import PATTERNS_CHARS_MAX
from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

_PAGE_MAX: Final = 1000

#: A filter as the API takes it.
Wanted = Mapping[str, str | int]


async def all_topics(client: ControllerClient, wanted: Wanted, limit: int, after: str = "") -> TopicsReply:
    """The topics that fit, up to ``limit``, as one page; after every change that was acknowledged before."""
    asked = {**wanted, "consistency": "linearizable"}
    reply = await client.list_topics(after=after, limit=min(limit, _PAGE_MAX), **asked)
    topics, next_after = list(reply.topics), reply.next_after
    while next_after is not None and len(topics) < limit:
        page = await client.list_topics(after=next_after, limit=min(limit - len(topics), _PAGE_MAX), **asked)
        topics += page.topics
        next_after = page.next_after
    return reply.model_copy(update={"topics": topics, "next_after": next_after})


async def all_partitions(client: ControllerClient, wanted: Wanted, limit: int, after: str = "") -> PartitionsReply:
    """The partitions that fit, up to ``limit``, as one page; after every change that was acknowledged before."""
    asked = {**wanted, "consistency": "linearizable"}
    reply = await client.list_partitions(after=after, limit=min(limit, _PAGE_MAX), **asked)
    topics, next_after, count = list(reply.topics), reply.next_after, _count(reply)
    while next_after is not None and count < limit:
        page = await client.list_partitions(after=next_after, limit=min(limit - count, _PAGE_MAX), **asked)
        _join(topics, page.topics)
        count += _count(page)
        next_after = page.next_after
    return reply.model_copy(update={"topics": topics, "next_after": next_after})


def _count(page: PartitionsReply) -> int:
    return sum(len(topic.partitions) for topic in page.topics)


def _join(topics: list[DescribedTopic], more: list[DescribedTopic]) -> None:
    """Append; a topic that was cut by the end of a page becomes whole."""
    if topics and more and topics[-1].topic_id == more[0].topic_id:
        both = [*topics[-1].partitions, *more[0].partitions]
        topics[-1], more = topics[-1].model_copy(update={"partitions": both}), more[1:]
    topics += more


async def topics_named(client: ControllerClient, names: Iterable[str]) -> dict[str, TopicSummary]:
    """The topics of these names that there are."""
    found: dict[str, TopicSummary] = {}
    for text in _texts(names):
        found |= {topic.name: topic for topic in (await all_topics(client, {"names": text}, sys.maxsize)).topics}
    return found


async def topics_described(client: ControllerClient, names: Iterable[str]) -> dict[str, DescribedTopic]:
    """The topics of these names that have partitions, with all of them."""
    found: dict[str, DescribedTopic] = {}
    for text in _texts(names):
        reply = await all_partitions(client, {"names": text}, sys.maxsize)
        found |= {topic.name: topic for topic in reply.topics if topic.name is not None}
    return found


def _texts(names: Iterable[str]) -> Iterator[str]:
    """The names with commas between them, as many at a time as are taken in one request."""
    text = ""
    # What can be no name is nobody's, and would be refused or taken for a pattern.
    for name in sorted({name for name in names if 0 < len(name) <= TOPIC_NAME_CHARS_MAX and not set("*,") & set(name)}):
        if text and len(text) + 1 + len(name) > PATTERNS_CHARS_MAX:
            yield text
            text = name
        else:
            text = f"{text},{name}" if text else name
    if text:
        yield text


def say_if_more(shown: int, matching: int) -> None:
    """A line for people where not all is shown."""
    if shown < matching:
        sys.stderr.write(f"quorate: {shown} of {matching} are shown; --limit gives more\n")
