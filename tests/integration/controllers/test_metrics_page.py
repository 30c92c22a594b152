"""Metrics of running processes: `docs/metrics.md` lists exactly what is served, and the values move when things do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.controller.protocol import CreateTopicsRequest, ElectLeadersRequest
from quorate.controller.protocol.topics import CreatableTopic
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.drills.controller_drills import VERSION_SETTING
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
#: Of Prometheus' library.
OF_THE_LIBRARY = ("process_", "python_")
PARTITIONS = 12
VERDICTS = ("healthy", "degraded", "critical", "no-quorum")


def listed(heading: str) -> dict[str, frozenset[str]]:
    """Metrics in the tables below a heading of the page, by name as it is queried, with their labels."""
    page = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\|[^|]*\| `([a-z_]+)(?:\{([a-z,]+)\})?` \|", page, flags=re.MULTILINE)
    found = {name: frozenset(labels.split(",")) - {""} for name, labels in rows}
    assert len(found) == len(rows), "a metric is listed twice"
    return found


class Scrape:
    """What a process serves."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.values = {
            (sample.name, *sample.labels.values()): sample.value for f in self.families for sample in f.samples
        }

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        name, *labels = (key,) if isinstance(key, str) else key
        return self.values[(f"quorate_{name}", *labels)]

    @property
    def names(self) -> dict[str, frozenset[str]]:
        """As in the page."""
        found = {}
        for family in self.families:
            if not family.name.startswith(OF_THE_LIBRARY):
                labels = {label for sample in family.samples for label in sample.labels} - {"le"}
                found[family.name + "_total" * (family.type == "counter")] = frozenset(labels)
        return found


async def scrape(port: int) -> Scrape:
    async with aiohttp.ClientSession() as session, session.get(f"http://{LOOPBACK}:{port}/metrics") as answer:
        assert answer.status == 200
        return Scrape(await answer.text())


def differences(served: dict[str, frozenset[str]], page: dict[str, frozenset[str]]) -> dict[str, object]:
    """What is in one and not in the other, and labels that are not as the page says."""
    return {
        "served and not listed": sorted(served.keys() - page.keys()),
        "listed and not served": sorted(page.keys() - served.keys()),
        # A family without any value yet shows no label.
        "other labels": {name: labels for name, labels in served.items() if labels and labels != page.get(name)},
    }


NONE: dict[str, object] = {"served and not listed": [], "listed and not served": [], "other labels": {}}


async def test_metrics_of_running_processes_are_those_of_the_page_and_move(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 3, 3, is_secured=False) as c:
        active = (await c.client.status()).quorum.active_id
        ports = {controller.id: controller.http_port for controller in c.plan.controllers}
        assert active is not None
        for port in ports.values():
            assert differences((await scrape(port)).names, listed("Controllers")) == NONE
        assert differences((await scrape(c.plan.brokers[0].http_port)).names, listed("Brokers")) == NONE

        await readers_have_sessions(c, list(ports.values()))
        levels_and_heartbeats_are_those_of_the_cluster(await scrape(ports[active]), c)
        await elections_are_counted_by_kind(c, ports[active])
        await what_the_quorum_does_is_counted(c, ports, active)


async def readers_have_sessions(c: LocalCluster, ports: list[int]) -> None:
    """Each broker process reads one controller, and says who it is."""
    sent = "quorate_feed_session_sent_bytes_total"

    async def labels() -> list[str]:
        scrapes = [await scrape(port) for port in ports]
        return sorted(key[1] for one in scrapes for key, value in one.values.items() if key[0] == sent and value)

    async def are_all_there() -> bool:
        return await labels() == sorted(str(first_id) for first_id in c.brokers)

    await eventually(are_all_there, "every broker process has a session")


def levels_and_heartbeats_are_those_of_the_cluster(active: Scrape, c: LocalCluster) -> None:
    """Levels are those that Kafka 4.3.1 starts with, and has; heartbeats come every two seconds."""
    kinds = ("minimum_supported_level", "finalized_level", "maximum_supported_level")
    assert [active[kind, "metadata.version"] for kind in kinds] == [7, 30, 30]
    assert [active[kind, "kraft.version"] for kind in kinds if kind != "finalized_level"] == [0, 1]
    silences = [active["time_since_last_heartbeat_received_seconds", str(broker)] for broker in c.brokers]
    assert all(0 <= silence < 10 for silence in silences)
    assert max(silences) > 0


async def elections_are_counted_by_kind(c: LocalCluster, port: int) -> None:
    topic = CreatableTopic(name="foo", num_partitions=PARTITIONS, replication_factor=3)
    await c.client.create_topics(CreateTopicsRequest(topics=[topic]))
    before = await scrape(port)
    assert [before["cluster_verdict", one] for one in VERDICTS] == [1, 0, 0, 0]
    assert [before[f"{name}_count"] for name in ("active_broker", "fenced_broker", "global_partition")] == [3, 0, 12]
    assert before["leader_elections_total", "offline"] == 0

    killed = min(c.brokers)
    c.brokers[killed].kill()

    async def is_fenced() -> Scrape | None:
        seen = await scrape(port)
        return seen if seen["fenced_broker_count"] == 1 else None

    fenced = await eventually(is_fenced, "the killed broker is fenced")
    assert fenced is not None
    assert [fenced["cluster_verdict", one] for one in VERDICTS] == [0, 1, 0, 0]
    moved = fenced["leader_elections_total", "offline"]
    assert moved == PARTITIONS / 3 == fenced["preferred_replica_imbalance_count"]
    assert fenced["leader_election_time_seconds_count", "offline"] >= 1
    assert fenced["broker_registration_state", str(killed)] == 10
    assert fenced["under_replicated_partitions"] == PARTITIONS
    assert fenced["event_queue_processing_time_seconds_count", "fence_stale_broker"] >= 1

    async def are_missed() -> bool:
        """Every partition has one replica outside its ISR, which one of the living brokers leads."""
        scrapes = [await scrape(one.http_port) for one in c.plan.brokers if one.ids[0] != killed]
        return sum(one["broker_replicas_outside_isr"] for one in scrapes) == PARTITIONS

    await eventually(are_missed, "leaders know whom they miss")
    await c.brokers[killed].wait(30)
    await c.brokers[killed].start()

    async def is_in_sync() -> bool:
        seen = await scrape(port)
        return seen["under_replicated_partitions"] == 0 and seen["active_broker_count"] == 3

    await eventually(is_in_sync, "the broker is back, and in sync")
    await c.client.elect_leaders(ElectLeadersRequest(election_type="PREFERRED", topic_partitions=None))
    elected = await scrape(port)
    assert elected["leader_elections_total", "preferred"] == moved
    assert elected["preferred_replica_imbalance_count"] == 0
    assert elected["unclean_leader_elections_total"] == 0

    leaving = max(c.brokers)
    await c.brokers[leaving].stop(30)
    left = await scrape(port)
    assert left["leader_elections_total", "controlled_shutdown"] == PARTITIONS / 3
    assert left["event_queue_time_seconds_count", "controlled_shutdown"] >= 1


async def what_the_quorum_does_is_counted(c: LocalCluster, ports: dict[int, int], active: int) -> None:
    leader = await scrape(ports[active])
    other = next(id_ for id_ in ports if id_ != active)
    follower = await scrape(ports[other])
    assert leader["raft_current_state", "leader"] == follower["raft_current_state", "follower"] == 1
    assert leader["raft_current_vote"] == active
    # A commit is not known before the disk of whoever leads has it, or those of the others.
    assert leader["disk_sync_seconds_count"] > 10
    room = os.statvfs(c.directory)
    assert leader["disk_free_bytes"] == pytest.approx(room.f_bavail * room.f_frsize, rel=0.2)
    assert (leader["faults"], follower["faults"]) == (0, 0)
    assert leader["raft_appended_batches_total"] >= leader["raft_commit_latency_seconds_count"] > 10
    assert leader["raft_appended_records_total"] >= leader["raft_appended_batches_total"]
    assert follower["raft_appended_records_total"] == 0 < follower["raft_fetched_records_total"]
    assert follower["raft_committed_batches_total"] > 10
    assert follower["raft_messages_received_total"] > 10
    assert leader["raft_log_end_epoch"] == leader["raft_current_epoch"]
    c.controllers[active].kill()

    async def has_failed_over() -> bool:
        """A new leader knows that it leads before it says so to whoever counts: its first batch comes in between."""
        seen = await scrape(ports[other])
        counted = ("raft_election_latency_seconds_count", "new_active_controllers_count_total")
        return seen["raft_current_leader"] not in (-1, active) and all(seen[name] > follower[name] for name in counted)

    await eventually(has_failed_over, "another controller is active, and that is counted")
    await version_of_messages_is_that_of_the_connection(c, ports[other], active)


async def version_of_messages_is_that_of_the_connection(c: LocalCluster, port: int, killed: int) -> None:
    """As another controller shows it of one that was killed, and comes back as if of the release before."""
    name = "raft_voter_message_version"
    spoken = await scrape(port)
    assert [one for key, one in spoken.values.items() if key[0] == f"quorate_{name}"] == [NEWEST_VERSION]
    c.controllers[killed].change({VERSION_SETTING: str(OLDEST_VERSION)})
    await c.controllers[killed].start()

    async def is_back() -> bool:
        return (f"quorate_{name}", str(killed)) in (await scrape(port)).values

    await eventually(is_back, "the controller that was killed is connected again")
    assert (await scrape(port))[name, str(killed)] == OLDEST_VERSION
