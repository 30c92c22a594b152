"""Pages of partitions joined, and names cut into requests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from quorate.controller.api.resources import PartitionsReply
from quorate.controller.protocol import DescribedPartition, DescribedTopic
from quorate.controller.reads.name_patterns import PATTERNS_CHARS_MAX, NamePatterns
from quorate.scripts.cli.topics.partition_rows import PARTITION_HEADINGS, partition_row
from quorate.scripts.terminal.paging import _texts, all_partitions

ALL = [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def partition(number: int) -> DescribedPartition:
    return DescribedPartition(
        partition_index=number,
        state="OfflinePartition",
        leader_id=-1,
        leader_epoch=3,
        partition_epoch=4,
        leader_recovery_state=0,
        replica_nodes=[11, 12],
        replica_states=["OfflineReplica", "OnlineReplica"],
        isr_nodes=[],
        eligible_leader_replicas=[11],
        last_known_elr=[],
        adding_replicas=[12],
        removing_replicas=[],
        offline_replicas=[11],
        directories=[bytes(16), bytes(16)],
    )


def page(found: list[tuple[str, int]], next_after: str | None) -> PartitionsReply:
    names = dict.fromkeys(name for name, _ in found)
    topics = [
        DescribedTopic(
            name=name,
            topic_id=name.encode() * 16,
            partitions=[partition(number) for other, number in found if other == name],
        )
        for name in names
    ]
    return PartitionsReply(state_offset=9, matching=len(ALL), topics=topics, next_after=next_after)


class Pages:
    """Two partitions a page, whatever is asked for beyond."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def list_partitions(self, *, after: str, limit: int, **wanted: str | int) -> PartitionsReply:
        assert wanted["names"] == "*"
        self.limits.append(limit)
        begin = next((at + 1 for at, (name, number) in enumerate(ALL) if f"{name}-{number}" == after), 0)
        found = ALL[begin : begin + min(limit, 2)]
        end = begin + len(found)
        return page(found, f"{found[-1][0]}-{found[-1][1]}" if end < len(ALL) else None)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
async def test_pages_are_joined_up_to_the_limit(limit: int) -> None:
    pages, wanted = Pages(), {"names": "*"}
    reply = await all_partitions(pages, wanted, limit)  # type: ignore[arg-type]
    found = [(topic.name, one.partition_index) for topic in reply.topics for one in topic.partitions]
    assert found == ALL[:limit]
    assert len({topic.topic_id for topic in reply.topics}) == len(reply.topics)
    assert (reply.next_after is None) == (limit >= len(ALL))
    assert max(pages.limits) <= limit


def test_names_are_cut_into_what_one_request_takes() -> None:
    names = [f"{number:0249d}" for number in range(40)]
    texts = list(_texts([*names, "", "x" * 250, "a*", "a,b"]))
    assert [name for text in texts for name in text.split(",")] == names
    for text in texts:
        assert len(text) <= PATTERNS_CHARS_MAX
        NamePatterns.parse(text)


def test_partition_without_a_leader_is_shown() -> None:
    shown: Mapping[str, str] = dict(zip(PARTITION_HEADINGS, partition_row(partition(7)), strict=True))
    assert shown == {
        "PARTITION": "7", "STATE": "Offline", "LEADER": "none", "EPOCH": "3", "REPLICAS": "11,12", "ISR": "-",
        "ELR": "11", "LAST-KNOWN-ELR": "-", "ADDING": "12", "REMOVING": "-", "OFFLINE": "11",
    }  # fmt: skip
