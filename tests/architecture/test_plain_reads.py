"""Reads of running clusters say how fresh they are: any controller answers a plain one, and a standby may lag."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import Module, dotted, imports, modules, refuse
from tests.architecture.test_tidy import snippet

#: What any controller answers of what it has heard of, unless it is asked for more. All else goes to the active one.
READS = frozenset(
    (
        "list_topics",
        "list_partitions",
        "describe_topic",
        "list_partition_reassignments",
        "describe_configs",
        "describe_features",
    )
)
FRESHNESS = frozenset(("consistency", "is_linearizable"))
#: Who imports one of these may have several controllers, each on its own; those of a stage are always level.
CLUSTERS = frozenset(
    (
        "quorate.scripts.cluster.local",
        "quorate.scripts.cluster.watched",
        "quorate.scripts.drills.environment",
        "tests.integration.own_machines",
        "tests.integration.running_cluster",
    )
)
#: Of a moment in the past, as the controller that is named has it.
OF_THE_PAST = frozenset(("quorate.scripts.drills.machine_drills",))


def plain_reads(module: Module) -> Iterator[str]:
    """Yield a line for every read that does not say how fresh it is to be, where a cluster runs."""
    if module.name in OF_THE_PAST or CLUSTERS.isdisjoint(name for _, name in imports(module.tree)):
        return
    for call in (node for node in ast.walk(module.tree) if isinstance(node, ast.Call)):
        is_read = dotted(call.func).rpartition(".")[2] in READS
        if is_read and FRESHNESS.isdisjoint(keyword.arg for keyword in call.keywords):
            yield f"{module.at(call)} calls {dotted(call.func)}: say consistency, or is_linearizable"


def test_reads_of_running_clusters_say_how_fresh_they_are() -> None:
    refuse([line for module in modules("scripts", "tests") for line in plain_reads(module)], "plain reads")


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("await cluster.client.list_topics()", 1),
        ('await client.describe_topic("orders")', 1),
        ('await client.describe_topic("orders", is_linearizable=True)', 0),
        ('await client.list_partitions(limit=1, consistency="committed")', 0),
        ("await client.describe_quorum()", 0),
    ],
)
def test_plain_read_is_found_where_a_cluster_runs(call: str, count: int) -> None:
    line = "from tests.integration.running_cluster import running_cluster\n"
    assert len(list(plain_reads(snippet(line + call, "tests.integration.example")))) == count
    assert not list(plain_reads(snippet(call, "tests.integration.example")))
