"""Layouts out of tables, plans as files, lost replicas and sizes in plans, and the planner's speed class."""

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from quorate.controller.planning.cluster import BrokerRole, Brokers, ClusterLayout, NoPlan, ReassignmentPlan
from quorate.controller.planning.planner import plan
from quorate.controller.planning.validator import judge
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, uuid_text
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.pipeline.planning.directories import BadDirectories
from quorate.pipeline.planning.files import PlanNotWritten, write_plan
from quorate.pipeline.planning.summary import planned
from quorate.pipeline.planning.tables import BadSizes, NamedCluster, UnknownBroker, named_cluster, read_sizes
from quorate.scripts.cli.topics.json_files import ReassignmentFile, read_json

RACKS = {11: "a", 12: "b", 13: "a", 14: "b"}


def partitions_table(
    rows: list[tuple[str, int, list[int]]], directories: list[list[str]] | None = None, **lists: list[list[int]]
) -> pa.Table:
    nothing: list[list[int]] = [[] for _ in rows]
    ints = pa.list_(pa.int32())
    return pa.table(
        {
            "topic": [row[0] for row in rows],
            "partition": pa.array([row[1] for row in rows], pa.int32()),
            "replicas": pa.array([row[2] for row in rows], ints),
            "directories": pa.array(directories or nothing, pa.list_(pa.string())),
            "removing_replicas": pa.array(lists.get("removing", nothing), ints),
            "adding_replicas": pa.array(lists.get("adding", nothing), ints),
            "leader": pa.array([row[2][0] for row in rows], pa.int32()),
        }
    )


def brokers_table(
    racks: dict[int, str | None], fenced: tuple[int, ...] = (), log_dirs: dict[int, list[str]] | None = None
) -> pa.Table:
    return pa.table(
        {
            "broker_id": pa.array(list(racks), pa.int32()),
            "rack": pa.array(list(racks.values()), pa.string()),
            "fenced": [one in fenced for one in racks],
            "log_dirs": pa.array([(log_dirs or {}).get(one, []) for one in racks], pa.list_(pa.string())),
        }
    )


def ids(named: NamedCluster, found: ReassignmentPlan) -> list[list[int]]:
    known = named.cluster.brokers.ids
    return [[int(known[one]) for one in row if one >= 0] for row in found.after]


def test_drained_broker_is_left_and_a_fenced_one_keeps_its_replicas() -> None:
    """What was on 14 goes to 12, the only other one of its rack that takes; 13 keeps its own."""
    named = named_cluster(
        partitions_table([("t", 0, [11, 14]), ("t", 1, [13, 14]), ("t", 2, [13, 12])]),
        brokers_table({**RACKS}, fenced=(13,)),
        drained=[14],
    )
    found = plan(named.cluster)

    assert ids(named, found) == [[11, 12], [13, 12], [13, 12]]
    assert judge(found).problems == ()


def test_open_reassignments_are_taken_where_they_end() -> None:
    """What is being removed does not count; a broker that is not registered is drained."""
    named = named_cluster(
        partitions_table([("t", 0, [12, 11, 13]), ("t", 1, [11, 99])], removing=[[11], []], adding=[[12], []]),
        brokers_table({**RACKS}),
    )

    assert named.in_motion == 1
    ids_of = [[int(named.cluster.brokers.ids[one]) for one in row if one >= 0] for row in named.cluster.replicas]
    assert ids_of == [[12, 13], [11, 99]]
    assert named.cluster.brokers.roles.tolist() == [0, 0, 0, 0, BrokerRole.DRAINS]


def test_too_few_brokers_are_refused_with_the_first_partition() -> None:
    """The sentence says what to do."""
    named = named_cluster(
        partitions_table([("a", 0, [11]), ("t", 3, [11, 12, 13])]), brokers_table({**RACKS}), drained=[13, 14]
    )

    with pytest.raises(
        NoPlan, match=r"1 partition is to have .*\(3 for 2\), and each needs a broker of its own: .* is t-3"
    ):
        planned(named)


def test_unknown_broker_to_drain_is_refused() -> None:
    """A typing error must not pass as a broker that is empty already."""
    with pytest.raises(UnknownBroker, match="no broker 31: 11, 12, 13, 14"):
        named_cluster(partitions_table([("t", 0, [11])]), brokers_table({**RACKS}), drained=[31])


def test_sizes_choose_what_is_moved() -> None:
    """Of forty replicas on one broker a half goes to the new one: those that even the bytes."""
    rows = [("t", number, [1]) for number in range(40)]
    sizes = {("t", number): 1000.0 if number < 4 else 10.0 for number in range(40)}
    named = named_cluster(partitions_table(rows), brokers_table({1: None, 2: None}), sizes=sizes)
    _, summary = planned(named)

    assert [one.replicas_after for one in summary.brokers] == [20, 20]
    after = [one.bytes_after or 0.0 for one in summary.brokers]
    assert abs(after[0] - after[1]) <= 1000


A, B, C = (uuid_text(bytes(15) + bytes([one])) for one in (200, 201, 202))
LOST, UNASSIGNED, MIGRATING = map(uuid_text, (DIRECTORY_LOST, DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING))


def lost_of(directories: list[list[str]], log_dirs: dict[int, list[str]]) -> list[list[bool]]:
    rows = [("t", number, [11, 12]) for number in range(len(directories))]
    named = named_cluster(partitions_table(rows, directories), brokers_table({**RACKS}, log_dirs=log_dirs))
    lost = named.cluster.lost
    return [[False, False]] * len(rows) if lost is None else lost.tolist()


def test_replica_is_lost_where_its_broker_has_not_its_directory() -> None:
    """Kafka's rule. B is 12's, not 11's; what is not assigned yet is online; an empty list says nothing."""
    directories = [[A, B], [B, B], [LOST, B], [UNASSIGNED, MIGRATING], [C, C], []]

    assert lost_of(directories, {11: [A], 12: [B]}) == [
        [False, False],
        [True, False],
        [True, False],
        [False, False],
        [True, True],
        [False, False],
    ]


def test_broker_that_named_no_directories_has_all_but_the_lost_one() -> None:
    """As brokers do that registered before directories."""
    assert lost_of([[A, LOST], [C, B]], {}) == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("directories", "message"),
    [
        ([[A, B], [A]], "1 partitions have not one directory for each replica, the first of them t-1: 1 for 2"),
        ([[A, B, C], [A, B]], "the first of them t-0: 3 for 2"),
        ([[A, "no id"], [A, B]], "a directory's id cannot be read: .*no id"),
        ([[A, None], [A, B]], "a directory's id cannot be read"),
    ],
)
def test_directories_that_are_not_the_replicas_are_refused(directories: list[list[str]], message: str) -> None:
    """Tables may come from elsewhere; the sentence names the partition, or the id."""
    with pytest.raises(BadDirectories, match=message):
        lost_of(directories, {11: [A], 12: [B]})


def test_directories_of_what_is_being_removed_go_with_it() -> None:
    """The replica on 11 is lost and being removed: the one that is left is not."""
    named = named_cluster(
        partitions_table([("t", 0, [11, 12]), ("t", 1, [12, 11])], [[LOST, B], [B, LOST]], removing=[[11], []]),
        brokers_table({**RACKS}),
    )

    assert named.cluster.lost is not None
    assert named.cluster.lost.tolist() == [[False, False], [False, True]]


def test_lost_replica_stays_and_counts_but_does_not_lead() -> None:
    """Nothing is uneven but the leaders: orders change, nothing moves. t-4 has no other that could lead."""
    order = [[11, 12], [12, 13], [13, 14], [14, 11]]
    rows = [("t", number, row) for number, row in enumerate(order)] + [("t", 4, [12]), ("t", 5, [11, 14])]
    directories = [[LOST, B], [B, B], [B, B], [B, B], [LOST], [LOST, LOST]]
    named = named_cluster(partitions_table(rows, directories), brokers_table({11: None, 12: None, 13: None, 14: None}))
    found, summary = planned(named)

    assert summary.moves == 0
    assert (summary.lost, summary.lost_moved) == (4, 0)
    after = ids(named, found)
    assert after[0] == [12, 11]
    assert (after[4], after[5]) == ([12], [11, 14])
    assert ReassignmentPlan(named.cluster, named.cluster.replicas).changed.tolist() == []
    assert judge(ReassignmentPlan(named.cluster, named.cluster.replicas)).problems == (
        "1 partitions prefer a lost replica though another could lead, the first in row 0",
    )


def test_lost_replicas_are_moved_before_others_where_as_many_move() -> None:
    """Half of forty replicas go to the new broker: among them all that were lost on the old one."""
    rows = [("t", number, [1]) for number in range(40)]
    directories = [[LOST if number % 3 == 0 else A] for number in range(40)]
    named = named_cluster(partitions_table(rows, directories), brokers_table({1: None, 2: None}))
    _, summary = planned(named)

    assert (summary.moves, summary.fewest_moves) == (20, 20)
    assert (summary.lost, summary.lost_moved) == (14, 14)


def test_of_two_in_a_rack_the_lost_one_goes() -> None:
    """Wherever it stands."""
    rows = [("t", 0, [11, 13]), ("t", 1, [12, 14])]
    named = named_cluster(partitions_table(rows, [[A, LOST], [LOST, A]]), brokers_table({**RACKS}))
    found, summary = planned(named)

    assert (summary.moves, summary.lost_moved) == (2, 2)
    assert [11 in ids(named, found)[0], 14 in ids(named, found)[1]] == [True, True]


@pytest.mark.parametrize("line", ["orders,0", "orders,x,1", "orders,0,-1", "orders,0,inf"])
def test_line_that_is_no_size_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    """The second line, after the names of the columns."""
    file = tmp_path / "sizes.csv"
    file.write_text(f"topic,partition,bytes\n{line}\n")

    with pytest.raises(BadSizes, match="line 2"):
        read_sizes(file)


def test_sizes_are_read_with_or_without_names_of_columns(tmp_path: Path) -> None:
    """As a spreadsheet writes them."""
    file = tmp_path / "sizes.csv"
    file.write_text('topic,partition,bytes\norders,0,1048576\n"a,b",1,2.5\n')

    assert read_sizes(file) == {("orders", 0): 1048576.0, ("a,b", 1): 2.5}


def test_plan_is_written_in_parts_that_the_commands_read(tmp_path: Path) -> None:
    """One request names so many partitions at most."""
    count = RECORDS_PER_OPERATION_MAX * 2 + 500
    rows = [("t", number, [1, 2]) for number in range(count)]
    named = named_cluster(partitions_table(rows), brokers_table({1: None, 2: None, 3: None, 4: None}), drained=[1])
    found = plan(named.cluster)
    files = write_plan(named, found, tmp_path / "plan")

    read = [read_json(file, ReassignmentFile) for file in files]
    assert [len(one.partitions) for one in read] == [RECORDS_PER_OPERATION_MAX] * 2 + [500]
    targets_of = {one.partition: one.replicas for file in read for one in file.partitions}
    assert [targets_of[number] for number in range(count)] == ids(named, found)
    assert json.loads(files[0].read_text())["version"] == 1


def test_plan_is_not_written_over_another(tmp_path: Path) -> None:
    """Files of two plans in one directory would be carried out together."""
    named = named_cluster(partitions_table([("t", 0, [1])]), brokers_table({1: None, 2: None}), drained=[1])
    found = plan(named.cluster)
    write_plan(named, found, tmp_path / "plan")

    with pytest.raises(PlanNotWritten, match="is there already"):
        write_plan(named, found, tmp_path / "plan")
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_plan_of_a_hundred_thousand_partitions_takes_seconds_and_reaches_the_bound() -> None:
    """Forty brokers in four racks, four of them new, one drained; about one second of one core."""
    chance = np.random.default_rng(1)
    brokers = Brokers.of({one: f"r{one % 4}" for one in range(40)}, {7: BrokerRole.DRAINS})
    start = chance.integers(0, 4, 100_000)
    columns = [(start + at) % 4 + 4 * chance.integers(0, 9, 100_000) for at in range(3)]
    named = NamedCluster(
        ClusterLayout(brokers, np.column_stack(columns).astype(np.int32)),
        np.full(100_000, "t", object),
        np.arange(100_000),
        columns[0].astype(np.int32),
        0,
    )
    before = time.process_time()
    _, summary = planned(named)

    assert time.process_time() - before < 20
    assert summary.verdict.replicas.is_even
    assert summary.verdict.leaders.is_even
    assert summary.moves == summary.fewest_moves
