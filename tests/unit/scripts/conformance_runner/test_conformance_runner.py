"""``scripts/conformance`` itself: what it reads, what it notices, what it says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quorate.scripts.conformance_runner.command import app
from quorate.scripts.conformance_runner.comparison import Difference, differences
from quorate.scripts.conformance_runner.kinds import full_controller
from quorate.scripts.conformance_runner.kinds.full_controller import _in_order
from quorate.scripts.conformance_runner.kinds.repetition import without_repetition
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.vector_file import BadVectorFile, read_vectors
from quorate.scripts.conformance_runner.wanted_differences import WantedDifference, judged

SCENARIOS = Path(__file__).parents[3] / "data" / "conformance" / "full_controller.jsonl.gz"
PARTITION_CHANGE = "PartitionChangeRecord"
SETTINGS = {
    "controller_node_id": 3000,
    "cluster_id": "a-cluster",
    "session_timeout_ms": 9000,
    "default_num_partitions": 1,
    "default_replication_factor": 3,
    "static_config": {},
    "bootstrap_records": [{"type": "FeatureLevelRecord", "version": 0, "name": "metadata.version", "level": 30}],
}
START: dict[str, Any] = {
    "id": "a start",
    "input": {"kind": "start", "current": [3, 5], "target": [2, 3]},
    "expected": {
        "replicas": [2, 3, 5],
        "removing_replicas": [5],
        "adding_replicas": [2],
        "in_progress": True,
        "original_replicas": [3, 5],
    },
}


def scenario(*steps: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    given = {"settings": SETTINGS, "ops": [op for op, _ in steps]}
    return {"id": "a scenario", "input": given, "expected": {"steps": [expected for _, expected in steps]}}


def written(path: Path, *vectors: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(vector) + "\n" for vector in vectors))
    return str(path)


def run(*arguments: str) -> tuple[int, list[str], str]:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.stdout.splitlines(), result.stderr


def test_wanted_difference_is_none_and_one_that_is_not_there_is_told() -> None:
    row = WantedDifference("v", "records[0].isr", [1], "ours is smaller")
    wanted, other = Difference("records[0].isr", [1, 2], [1]), Difference("records[0].leader", 1, 2)

    def left(*found: Difference, vector_id: str = "v") -> list[str]:
        return [one.place for one in judged(VectorOutcome(vector_id, list(found)), [row]).differences]

    assert left(wanted) == []
    assert left(wanted, other) == ["records[0].leader"]
    assert left(wanted, vector_id="another") == ["records[0].isr"]
    # What no longer differs, or differs in another way, is no longer wanted.
    assert left() == ["records[0].isr"]
    assert left(Difference("records[0].isr", [1, 2], [2])) == ["records[0].isr"] * 2
    (told,) = judged(VectorOutcome("v", []), [row]).differences
    assert "take its row out (ours is smaller)" in str(told)


def test_comparison_nested_values_names_each_place() -> None:
    expected = {"a": [{"isr": [1, 2]}, {"b": 1}], "c": None}
    got = {"a": [{"isr": [2, 1]}, {"b": True}], "d": 0}

    assert [str(found) for found in differences(expected, got)] == [
        "a[0].isr: expected [1, 2], got [2, 1]",
        "a[1].b: expected 1, got True",
        "c: expected None, got '(absent)'",
        "d: expected '(absent)', got 0",
    ]


def test_comparison_elr_and_ignored_fields_differ_in_nothing() -> None:
    expected = {"elr": [1, 2], "last_known_elr": [3, 1], "message": "so"}
    got = {"elr": [2, 1], "last_known_elr": [1, 3], "message": "otherwise"}

    assert differences(expected, got, ignores=("message",)) == []
    assert len(differences(expected, got)) == 1


def test_order_of_records_only_runs_of_changes_and_new_partitions_are_moved() -> None:
    def record(kind: str, topic: int, partition: int = -1) -> dict[str, Any]:
        return {"type": kind, "topic_id": f"t{topic}", "partition": partition}

    change, created, topic = "PartitionChangeRecord", "PartitionRecord", "TopicRecord"
    given = [record(change, 10, 1), record(change, 9), record(topic, 11), record(change, 1), record(change, 0)]
    assert _in_order(given) == [given[1], given[0], given[2], given[4], given[3]]
    given = [record(topic, 0), record(created, 0, 1), record(created, 0, 0), record(topic, 1), record(created, 1, 0)]
    assert _in_order(given) == [given[0], given[3], given[2], given[1], given[4]]


def test_order_of_records_only_the_configs_of_one_topic_are_a_set() -> None:
    def config(name: str, resource: str = "a", kind: str = "TOPIC") -> dict[str, Any]:
        return {"type": "ConfigRecord", "resource_type": kind, "resource_name": resource, "name": name}

    given = [config("y"), config("x"), config("b", "b"), config("a", "b"), config("w")]
    assert _in_order(given) == [given[1], given[0], given[3], given[2], given[4]]
    for kept in ([config("a", "b"), config("a", "a")], [config("y", "1", "BROKER"), config("x", "1", "BROKER")]):
        assert _in_order(kept) == kept


def change(partition: int, **fields: Any) -> dict[str, Any]:
    return {"type": "PartitionChangeRecord", "version": 2, "topic_id": "t0", "partition": partition, **fields}


def registration(*records: dict[str, Any], op: str = "register_broker", epochs: tuple[int, ...] = ()) -> Any:
    """What the runner makes of a step with these records; state with these partition epochs, if there are any."""
    step: dict[str, Any] = {"first_offset": 4, "records": list(records)}
    if epochs:
        partitions = [{"partition_epoch": epoch} for epoch in epochs]
        step["state"] = {"next_offset": 9, "topics": {"a": {"topic_id": "t0", "partitions": partitions}}}
    return without_repetition({"op": op}, step)


def test_repetition_of_an_emptied_elr_is_written_once() -> None:
    first, second, other = change(0, elr=[]), change(1, elr=[], isr=[2]), change(2, elr=[3])

    found = registration(first, first, second, second, other, epochs=(7, 8, 9))

    assert found["records"] == [first, second, other]
    assert found["state"]["next_offset"] == 7
    assert [one["partition_epoch"] for one in found["state"]["topics"]["a"]["partitions"]] == [6, 7, 9]


@pytest.mark.parametrize(
    "records",
    [
        (change(0, elr=[]),),
        (change(0, elr=[]), change(1, elr=[])),
        (change(0, elr=[]), change(0, elr=[], isr=[1])),
        (change(0, elr=[1]), change(0, elr=[1])),
        (change(0, isr=[1]), change(0, isr=[1])),
    ],
)
def test_repetition_of_anything_else_is_none(records: tuple[dict[str, Any], ...]) -> None:
    assert registration(*records) is None


def test_repetition_in_another_request_is_none() -> None:
    assert registration(change(0, elr=[]), change(0, elr=[]), op="broker_heartbeat") is None


def emptied_in(step: dict[str, Any]) -> list[int]:
    """Which records of a step empty an ELR."""
    records = step["records"]
    return [at for at, record in enumerate(records) if record["type"] == PARTITION_CHANGE and record.get("elr") == []]


def unclean_return(number: int) -> tuple[dict[str, Any], int]:
    """A scenario of Kafka's in which a broker's registration empties an ELR, and the number of that step."""
    for kind, vector in read_vectors(SCENARIOS):
        assert kind == "full_controller"
        if vector["id"].endswith(f"-{number:04}"):
            for at, (op, step) in enumerate(zip(vector["input"]["ops"], vector["expected"]["steps"], strict=True)):
                if op["op"] == "register_broker" and emptied_in(step):
                    return vector, at
    raise AssertionError(f"scenario {number} has no such step")


def test_scenario_with_a_repetition_passes_up_to_it_and_is_counted(tmp_path: Path) -> None:
    vector, at = unclean_return(66)
    steps = vector["expected"]["steps"]
    first = emptied_in(steps[at])[0]
    emptied = steps[at]["records"][first]
    steps[at]["records"].insert(first, emptied)

    code, lines, _ = run(written(tmp_path / "vectors", vector))

    assert code == 0
    assert lines[-2:] == [f"    1 ended at a change that Kafka writes twice: {vector['id']}", "1 passed, 0 failed"]
    assert f"    register_broker: {sum(op['op'] == 'register_broker' for op in vector['input']['ops'][: at + 1])}" in (
        line.partition(" steps")[0] for line in lines
    )


def test_scenario_with_a_repetition_and_another_difference_fails() -> None:
    vector, at = unclean_return(66)
    records = vector["expected"]["steps"][at]["records"]
    first = emptied_in(vector["expected"]["steps"][at])[0]
    records.insert(first, records[first])
    records[-1] = records[-1] | {"fenced": False}

    outcome = full_controller.run_vector(vector)

    assert (outcome.has_passed, outcome.failed_step, outcome.has_repetition) == (False, at, False)


def test_scenario_wrong_answer_ends_it_at_that_step() -> None:
    unknown = {"op": "unregister_broker", "broker": 91}
    refused = {"first_offset": 1, "exception": {"error": "BROKER_ID_NOT_REGISTERED"}, "records": []}
    outcome = full_controller.run_vector(
        scenario(
            ({"op": "advance_time", "ms": 5}, {"first_offset": 1, "records": []}),
            (unknown, refused),
            (unknown, refused | {"first_offset": 7}),
            (unknown, refused),
        )
    )

    assert [str(found) for found in outcome.differences] == [
        "step 2 (unregister_broker).first_offset: expected 7, got 1"
    ]
    assert outcome.failed_step == 2
    assert outcome.steps == {("advance_time", True): 1, ("unregister_broker", True): 1, ("unregister_broker", False): 1}


def test_scenario_operation_that_is_unknown_fails() -> None:
    outcome = full_controller.run_vector(scenario(({"op": "dance"}, {"first_offset": 1, "records": []})))

    assert not outcome.has_passed


def test_command_all_agree_passes_packed_or_not(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", START)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes()))

    code, lines, _ = run(plain, str(packed), "--jobs", "2")

    assert (code, lines) == (0, ["reassignment: 2 passed, 0 failed", "2 passed, 0 failed"])


def test_command_one_differs_shows_it_and_fails(tmp_path: Path) -> None:
    wrong = START | {"id": "wrong", "expected": START["expected"] | {"in_progress": False}}
    path = written(tmp_path / "vectors", START, wrong)

    code, lines, _ = run(path, "-v")

    assert code == 1
    assert lines == [
        f"wrong: {json.dumps(START['input'])}",
        "    in_progress: expected False, got True",
        "reassignment: 1 passed, 1 failed",
        "1 passed, 1 failed",
    ]
    assert run(path, "--id", "a start")[:2] == (0, ["reassignment: 1 passed, 0 failed", "1 passed, 0 failed"])


def test_command_vector_that_breaks_the_program_fails_by_itself(tmp_path: Path) -> None:
    broken = START | {"id": "broken", "input": {"kind": "start"}}

    code, lines, _ = run(written(tmp_path / "vectors", broken, START))

    assert (code, lines[-1]) == (1, "1 passed, 1 failed")


def test_command_nothing_asked_for_is_a_wrong_call(tmp_path: Path) -> None:
    code, _, problem = run(written(tmp_path / "vectors", START), "--part", "placement")

    assert (code, problem) == (2, "conformance: no vector of these files was asked for\n")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no vectors in it"),
        (b"not json\n", "line 1: Expecting value"),
        (b"[1]\n", "line 1: a vector is an object with a string id"),
        (
            json.dumps(START).encode() + b'\n{"id": "x", "input": {}, "expected": {}}\n',
            "line 2: vector x is of no known",
        ),
        (gzip.compress(json.dumps(START).encode(), mtime=0)[:-12], "end-of-stream marker"),
        (b"\xff\xfe\n", "line 1"),
    ],
)
def test_command_file_of_something_else_is_named_with_the_reason(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)

    with pytest.raises(BadVectorFile, match=problem) as caught:
        list(read_vectors(path))
    assert str(path) in str(caught.value)
    assert run(str(path))[0] == 2


def test_command_file_that_is_missing_is_named(tmp_path: Path) -> None:
    code, _, problem = run(str(tmp_path / "nothing"))

    assert (code, problem) == (2, f"conformance: {tmp_path / 'nothing'}: No such file or directory\n")
