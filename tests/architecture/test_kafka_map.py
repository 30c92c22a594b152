"""docs/kafka-map.md and docs/damage.md name modules, functions and tests: each of them exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_tree import PACKAGES, ROOT, refuse

PAGE = ROOT / "docs" / "kafka-map.md"
DAMAGE = ROOT / "docs" / "damage.md"
_PLACES = "|".join((*PACKAGES, "docs", "tests"))
#: A file of ours in backquotes, and what it says of a name in it: `tests/unit/test_x.py::test_y`.
_REFERENCE = re.compile(rf"`((?:{_PLACES})/[\w./-]+)(?:::(\w+))?`")


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


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of the functions, classes, methods and constants of a module."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


def missing(text: str) -> Iterator[str]:
    """A line for every reference that leads nowhere."""
    for number, line in enumerate(text.splitlines(), start=1):
        for path, name in _REFERENCE.findall(line):
            place = ROOT / path
            if not place.exists():
                yield f"line {number}: there is no {path}"
            elif name and (place.suffix != ".py" or name not in names_in(place)):
                yield f"line {number}: {path} has no {name}"


@pytest.mark.parametrize("page", [PAGE, DAMAGE])
def test_whatever_the_page_names_exists(page: Path) -> None:
    refuse(missing(page.read_text(encoding="utf-8")), f"references of docs/{page.name} that lead nowhere")


def test_every_kind_of_damage_names_what_holds_its_rule() -> None:
    rows = [line for line in DAMAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    refuse((row for row in rows if not _REFERENCE.search(row)), "kinds of damage in docs/damage.md that nothing holds")


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


@pytest.mark.parametrize(
    "wrong",
    [
        "`controller/no_such_module.py`",
        "`snapshots/derived_states.py::no_such_name`",
        "`tests/unit/nowhere.py::test_x`",
    ],
)
def test_reference_that_leads_nowhere_is_found(wrong: str) -> None:
    assert len(list(missing(f"see {wrong}"))) == 1


def test_reference_to_what_exists_is_right() -> None:
    assert not list(missing("`snapshots/derived_states.py::REPLICA_PREVIOUS` and `snapshots/` and `quorate_x`"))
