"""docs/kafka-map.md and docs/damage.md are whole: every event and every kind of damage has what holds it."""

import re

from tests.architecture.source_tree import REFERENCE, ROOT, refuse

PAGE = ROOT / "docs" / "kafka-map.md"
DAMAGE = ROOT / "docs" / "damage.md"

#: The events of Kafka's older controller (``KafkaController.process`` of 2.8), those of its tests and its end left out.
EVENTS = [
    "AllocateProducerIds", "AlterPartitionReceived", "ApiPartitionReassignment", "AutoPreferredReplicaLeaderElection",
    "BrokerChange", "BrokerModifications", "ControlledShutdown", "ControllerChange", "Expire",
    "IsrChangeNotification", "LeaderAndIsrResponseReceived", "ListPartitionReassignments", "LogDirEventNotification",
    "PartitionModifications", "PartitionReassignmentIsrChange", "Reelect", "RegisterBrokerAndReelect",
    "ReplicaLeaderElection", "Startup", "TopicChange", "TopicDeletion", "TopicDeletionStopReplicaResponseReceived",
    "TopicUncleanLeaderElectionEnable", "UncleanLeaderElectionEnable", "UpdateFeatures",
    "UpdateMetadataResponseReceived", "ZkPartitionReassignment",
]  # fmt: skip


def test_every_kind_of_damage_names_what_holds_its_rule() -> None:
    rows = [line for line in DAMAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    refuse((row for row in rows if not REFERENCE.search(row)), "kinds of damage in docs/damage.md that nothing holds")


def test_every_event_has_one_row_and_a_test() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("## The events of its queue") : page.index("## Partition and replica states")]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == EVENTS
    assert f"Its {len(EVENTS)} events" in table
    refuse(
        (row for row in rows if "`tests/" not in row.rsplit("|", 2)[1]), "events in docs/kafka-map.md without a test"
    )


def test_metrics_that_the_map_names_are_on_their_page() -> None:
    """And that page is compared with what running processes serve."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(quorate_\w+)", PAGE.read_text(encoding="utf-8")))
    assert named
    refuse(named - set(re.findall(r"`(quorate_\w+)", page)), "metrics that docs/metrics.md does not have")
