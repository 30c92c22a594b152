"""`GET /v1/answers/timeline` over sockets: read back from the end of the log, in parts of bounded size."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from quorate.controller.http.handlers import answers
from quorate.controller.reads.answer_turns import ANSWERS_MAX
from quorate.controller.reads.past import PastImages, StretchSize
from tests.guards.patching import patching
from tests.integration.http_stage import Stage, stage

SECRET = b"s" * 32


async def timeline(s: Stage, node_id: int = 1, **parameters: int) -> dict[str, Any]:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    status, reply, headers = await s.ask(node_id, "GET", f"/v1/answers/timeline?{query}")
    assert (status, headers["X-Quorate-Node"]) == (200, str(node_id)), reply
    return dict(reply)


async def lived(s: Stage) -> None:
    """Three brokers come, one after the other, and topics between them; another controller takes over."""
    for broker_id in (11, 12, 13):
        await s.register(1, broker_id)
        topic = {"name": f"with-{broker_id}", "num_partitions": 1, "replication_factor": 1}
        await s.ask(1, "POST", "/v1/topics", {"topics": [topic]})
    await s.elect(2)


async def test_every_controller_tells_what_happened_without_asking_another() -> None:
    async with stage() as s:
        await lived(s)
        replies = [await timeline(s, node_id) for node_id in s.members]
        assert all(reply.pop("now_ms") for reply in replies)
        assert replies[0] == replies[1] == replies[2]
        reply = replies[0]
        assert [event["brokers"] for event in reply["events"] if event["kind"] == "registered"] == [[11], [12], [13]]
        assert [span["node"] for span in reply["spans"] if span["lane"] == "broker"] == [11, 12, 13]
        assert (reply["begin_offset"], reply["end_offset"], reply["earlier"]) == (0, s.quorum.committed, None)


async def test_nobody_leads_on_once_the_quorum_is_lost() -> None:
    async with stage(1) as s:
        await lived(s)
        led = (await timeline(s))["spans"]
        await s.elect(None)
        left = (await timeline(s))["spans"]
        ends = [[span["to_ms"] for span in spans if span["lane"] == "epoch"][-1] for spans in (led, left)]
        assert (ends[0], ends[1] is None) == (None, False)


async def test_long_log_is_told_in_parts_that_meet_and_say_the_same() -> None:
    async with stage(1) as s:
        await lived(s)
        whole = await timeline(s)
        with patching() as patch:
            patch.setattr(answers, "STRETCH_MAX", StretchSize(700, 1_000))
            parts = [await timeline(s)]
            while parts[0]["earlier"] is not None:
                parts.insert(0, await timeline(s, before=parts[0]["earlier"]))
        assert len(parts) > 2
        ends = [(part["begin_offset"], part["end_offset"]) for part in parts]
        assert [end for _, end in ends[:-1]] == [begin for begin, _ in ends[1:]]
        assert (ends[0][0], ends[-1][1]) == (0, whole["end_offset"])
        assert [(event["offset"], event["kind"]) for part in parts for event in part["events"]] == [
            (event["offset"], event["kind"]) for event in whole["events"]
        ]


async def test_part_begins_with_the_earliest_checkpoint_that_lies_near() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        taken = (await s.ask(1, "POST", "/v1/checkpoints"))[1]["checkpoint"]
        await s.register(1, 12)
        await s.ask(1, "POST", "/v1/checkpoints")
        await s.register(1, 13)
        log = s.members[1].log
        with patching() as patch:
            behind = log.bytes_below(s.quorum.committed) - log.bytes_below(taken["end_offset"])
            patch.setattr(answers, "STRETCH_MAX", StretchSize(behind + 1, 1_000))
            reply = await timeline(s)
        assert reply["begin_offset"] == taken["end_offset"], taken
        assert {tuple(event["brokers"]) for event in reply["events"]} == {(12,), (13,)}
        away = [(span["node"], span["from_offset"]) for span in reply["spans"] if span["lane"] == "broker"]
        assert away[0] == (12, reply["events"][0]["offset"])
        assert [node for node, _ in away] == [12, 13]


async def test_part_begins_with_a_state_in_memory_where_little_is_missed_for_it() -> None:
    async with stage(1) as s:
        await lived(s)
        past, states, end = s.members[1].node.past, s.members[1].digests.kept(), s.quorum.committed
        assert isinstance(past, PastImages)
        ends = [state.provenance.end_offset for state in states]
        begun = {}
        with patching() as patch:
            patch.setattr(answers, "STRETCH_MAX", StretchSize(1_000_000, end - ends[0]))
            for state in states[1:]:
                past._held = lambda state=state: [state]  # type: ignore[misc]
                begun[state.provenance.end_offset] = (await timeline(s))["begin_offset"]
        middle = (ends[0] + end) / 2
        assert begun == {held: held if held <= middle else ends[0] for held in ends[1:]}
        assert len(set(begun.values())) > 2


async def test_part_is_no_larger_than_it_may_be_or_is_one_batch() -> None:
    async with stage(1) as s:
        await lived(s)
        past, end = s.members[1].node.past, s.quorum.committed
        assert isinstance(past, PastImages)
        borders = [0, *s.members[1].digests.kept_offsets()]
        past._held = list
        for records in range(1, end + 1):
            with patching() as patch:
                patch.setattr(answers, "STRETCH_MAX", StretchSize(1_000_000, records))
                begin = (await timeline(s))["begin_offset"]
            assert begin == next((border for border in borders[:-1] if end - border <= records), borders[-2]), records


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("before=999999", 409, "ends at offset"),
        ("before=-1", 400, "before"),
        ("limit=0", 400, "limit"),
        ("limit=1001", 400, "limit"),
        ("since=3", 400, "since"),
    ],
)
async def test_part_that_is_none_is_refused(query: str, status: int, says: str) -> None:
    async with stage(1) as s:
        seen, reply, _ = await s.ask(1, "GET", f"/v1/answers/timeline?{query}")
        assert seen == status
        assert says in reply["message"]


async def test_log_without_records_has_no_events() -> None:
    async with stage(1) as s:
        reply = await timeline(s, before=0)
        assert (reply["events"], reply["spans"], reply["begin_ms"], reply["earlier"]) == ([], [], None, None)


async def test_log_is_not_read_for_whom_there_is_no_place_in_the_line() -> None:
    async with stage(1) as s:
        await lived(s)
        node = s.members[1].node
        with ExitStack() as taken:
            for _ in range(ANSWERS_MAX):
                taken.enter_context(node.turns.place(None))
            status, reply, _ = await s.ask(1, "GET", "/v1/answers/timeline")
        assert isinstance(node.past, PastImages)
        assert (status, node.past.built) == (429, 0), reply
        assert (await timeline(s))["events"]


async def test_stranger_is_told_nothing() -> None:
    async with stage(1, shared_secret=SECRET) as s, s.session.get(f"{s.urls[0]}/v1/answers/timeline") as answer:
        assert answer.status == 401
