"""`quorate timeline` and `quorate incidents` of a cluster whose log was captured (static/timeline.json)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quorate.metadata_log.records import records as r
from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.programs.documents import SCHEMA_VERSION
from tests.pipeline_logs import BEHEADED_LOG, KAFKA, LogWriter

LOG = KAFKA / "static" / "m3" / "log"


def run(*arguments: str, log: Path = LOG) -> tuple[str, str]:
    """Standard output and error."""
    words = [*arguments, "--from", str(log)]
    seen = CliRunner().invoke(make_app(words), words)
    assert seen.exit_code == exit_codes.DONE, (seen.output, seen.exception)
    return seen.stdout, seen.stderr


def events(*arguments: str, log: Path = LOG) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("timeline", "--json", *arguments, log=log)[0].splitlines()]


@pytest.fixture(scope="module")
def whole() -> list[dict[str, Any]]:
    return events()


def test_brokers_are_told_with_what_they_took_along(whole: list[dict[str, Any]]) -> None:
    """14 and 13 got SIGKILL, 12 SIGTERM, 15 was stopped and unregistered."""
    fenced = {event["offset"]: event for event in whole if event["kind"] == "broker_fenced"}
    assert {offset: event["brokers"] for offset, event in fenced.items()} == {5385: [14], 10992: [13], 17578: [15]}
    assert fenced[10992]["text"] == (
        "broker 13 fenced; 1,538 partitions lost it, 1,169 of them their leader, 781 for no other"
    )
    assert fenced[17578]["text"] == "broker 15 fenced"
    others = [(event["kind"], event["offset"]) for event in whole if event["brokers"] in ([12], [15])]
    assert [one for one in others if one[1] > 17000 and "min_isr" not in one[0]] == [
        ("registered", 17574), ("unfenced", 17577), ("broker_fenced", 17578), ("broker_unregistered", 17579),
        ("controlled_shutdown", 17580), ("broker_stopped", 18992),
    ]  # fmt: skip


def test_partitions_without_a_leader_have_begin_and_end(whole: list[dict[str, Any]]) -> None:
    offline = [event for event in whole if event["kind"].startswith("offline")]
    assert [(event["kind"], event["offset"], event["partitions"], event["lasted_ms"]) for event in offline] == [
        ("offline_begins", 5032, 1, None), ("offline_begins", 9468, 781, None),
        ("offline_ends", 12527, 1, 35_226), ("offline_ends", 13291, 4, 19_302), ("offline_ends", 14856, 777, 29_495),
    ]  # fmt: skip
    below = [event for event in whole if event["kind"] == "under_min_isr_begins"]
    assert [(event["partitions"], event["text"].endswith("it lasts")) for event in below] == [
        (3, False), (786, False), (2, True),
    ]  # fmt: skip


def test_reassignments_elections_and_mass_changes_are_told(whole: list[dict[str, Any]]) -> None:
    told = [(event["kind"], event["offset"]) for event in whole]
    moved = [event for event in whole if event["kind"].startswith("reassignment")]
    assert [(event["offset"], event["partitions"], event["text"].split(" (")[0]) for event in moved] == [
        (9443, 4, "reassignment of 4 partitions begun"),
        (9448, 2, "reassignment of 2 partitions completed, the longest after 0.0 s"),
        (9450, 2, "reassignment of 2 partitions cancelled, the longest after 0.5 s"),
        (13286, 2, "reassignment of 2 partitions completed, the longest after 21.4 s"),
    ]
    (elected,) = [event for event in whole if event["kind"] == "controller_elected"]
    assert elected["offset"] == 17539
    assert elected["text"] == (
        "controller 3 elected in epoch 2, 2.2 s after the last record of controller 1, its first write after 3.9 s"
    )
    for one in (("unclean_election", 12528), ("last_known_leader_election", 14080), ("mass_change", 17550)):
        assert one in told


def test_events_are_in_order_and_chosen_by_time_and_number(whole: list[dict[str, Any]]) -> None:
    offsets = [event["offset"] for event in whole]
    assert offsets == sorted(offsets)
    late = [event for event in whole if event["offset"] >= 17577]
    assert events("--since", "2026-11-21T00:16:03Z") == late
    shown, said = run("timeline", "--newest-first", "--limit", "2", "--since", "17577")
    assert [line.split()[1] for line in shown.splitlines()] == ["OFFSET", "18992", "18247"]
    assert said == f"quorate: the last 2 of {len(late)} events are shown; --limit shows more\n"


def test_history_that_is_told_until_a_moment_ends_there() -> None:
    """Between the two crashes: one partition has no leader, and nobody knows yet when it will."""
    until = events("--until", "9000")
    assert [event["kind"] for event in until if event["offset"] > 1000] == [
        "under_min_isr_begins", "offline_begins", "broker_fenced",
    ]  # fmt: skip
    assert until[-2]["text"].endswith("broker fenced, broker 14, offset 5385; it lasts")


def test_incidents_are_those_of_the_log_and_of_the_time_that_is_asked_for() -> None:
    lines = run("incidents")[0].splitlines()
    assert lines[0].startswith("Cluster CGX0FmftRoq9tiEOLU7vAA: offsets 29 to 18989, 94.9 s from 2026-11-21T00:14:32")
    assert lines[1] == "  20 incidents: 5 critical, 12 major, 3 minor; 2 open."
    assert "  Partitions without a leader: 782 times, 6.4 h together, 0 of them still." in lines
    found = json.loads(run("incidents", "--json", "--since", "17000", "--slow-minutes", "0.2")[0])
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["as_of"] == {"offset": 18_994, "time": None}, "the log's end; of files the same at any time"
    assert [(one["kind"], one["from_offset"]) for one in found["incidents"]] == [
        ("mass_change", 16396), ("controller_failover", 17539), ("mass_change", 17550), ("broker_crash", 17578),
        ("controlled_shutdown", 17580), ("under_min_isr", 18247),
    ]  # fmt: skip


def test_what_lasts_counts_to_where_the_log_ends_and_not_to_the_last_change_of_a_partition(tmp_path: Path) -> None:
    """A log goes on while nothing changes: whoever looks after an hour is told an hour. Batches are a second apart."""
    log, topic = LogWriter(tmp_path / "quiet"), bytes(15) + b"a"
    log.append([r.TopicRecord("a", topic), r.PartitionRecord(0, topic, (1, 2), (1, 2), leader=1)])
    log.append([r.PartitionChangeRecord(0, topic, leader=-1)])
    log.append([r.PartitionChangeRecord(0, topic, replicas=(2, 1, 3), adding_replicas=(3,))])
    for _ in range(11):
        log.append([r.NoOpRecord()])

    def told(*arguments: str) -> tuple[list[tuple[str, list[str]]], list[str]]:
        """How long each lasts, and the length of all."""
        found = json.loads(run("incidents", "--json", *arguments, log=log.path)[0])
        lasts = [(one["kind"], re.findall(r"since ([0-9.]+ s)", one["text"])) for one in found["incidents"]]
        return lasts, re.findall(r"[0-9.]+ s(?= from)", run("incidents", *arguments, log=log.path)[0])

    assert told() == ([("leaderless", ["12.0 s"]), ("reassignment_open", ["11.0 s"])], ["14.0 s"])
    assert told("--until", "7") == ([("leaderless", ["4.0 s"]), ("reassignment_open", ["3.0 s"])], ["6.0 s"])


def test_broker_that_led_nothing_may_have_been_stopped_in_order(tmp_path: Path) -> None:
    """Kafka fences it at once: there is nothing to hand over, and no record of the shutdown."""
    log, topic = LogWriter(tmp_path / "log"), bytes(15) + b"a"
    for broker in (1, 2, 3):
        log.append([r.RegisterBrokerRecord(broker, incarnation_id=bytes(15) + bytes([broker]), fenced=False)])
    log.append([r.TopicRecord("a", topic), r.PartitionRecord(0, topic, (1, 2, 3), (1, 2, 3), leader=1)])
    for broker, left, leader in ((2, (1, 3), -2), (1, (3,), 3)):
        change = r.PartitionChangeRecord(0, topic, isr=left, leader=leader)
        log.append([change, r.BrokerRegistrationChangeRecord(broker, fenced=1)])

    found = json.loads(run("incidents", "--json", log=log.path)[0])["incidents"]
    texts = {one["brokers"][0]: one["text"] for one in found if one["kind"] == "broker_crash"}
    assert "1 partition lost it, 0 of them their leader" in texts[2]
    assert "it led nothing, and of such a broker a clean stop leaves the same records" in texts[2]
    assert "1 partition lost it, 1 of them their leader" in texts[1]
    assert "clean stop" not in texts[1]


def test_log_that_ends_before_what_is_asked_for_says_where() -> None:
    for command, told in (("timeline", ["quorate: nothing happened"]), ("incidents", [])):
        end = "quorate: the log ends at offset 18994, time 2026-11-21T00:16:07.229+00:00, before what --since names"
        assert run(command, "--since", "30000")[1].splitlines() == [end, *told]
        assert "the log ends" not in run(command, "--since", "18993")[1]


def test_log_that_begins_later_is_told_from_there_and_says_so(tmp_path: Path) -> None:
    _, said = run("timeline", log=BEHEADED_LOG)
    assert said.startswith("quorate: the log begins at offset 15719, time 2026-")
    assert run("timeline", "--since", "15719", log=BEHEADED_LOG)[1] == ""
    assert run("timeline", log=LogWriter(tmp_path / "empty").path) == ("", "quorate: nothing happened\n")
    said_of_nothing = "There was no partition: there is nothing to tell.\n"
    assert run("incidents", log=LogWriter(tmp_path / "other").path) == (said_of_nothing, "")
