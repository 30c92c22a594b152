"""``full_controller``: scenarios of requests and periodic work on one controller, compared step by step."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from quorate.metadata_log.errors import ApiError
from quorate.scripts.conformance_runner.comparison import Difference, differences
from quorate.scripts.conformance_runner.kinds import cluster_requests, config_requests, partition_requests
from quorate.scripts.conformance_runner.kinds.repetition import without_repetition
from quorate.scripts.conformance_runner.kinds.stage import ScenarioStage
from quorate.scripts.conformance_runner.kinds.state_form import state_form
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form

_Operation = Callable[[ScenarioStage, Form], Awaitable[Any]]

_OPERATIONS: Final[dict[str, _Operation]] = {
    name: getattr(module, name)
    for module, names in (
        (
            cluster_requests,
            ("advance_time", "register_broker", "broker_heartbeat", "unregister_broker", "fence_stale_broker"),
        ),
        (config_requests, ("incremental_alter_configs", "update_features")),
        (
            partition_requests,
            (
                "create_topics",
                "create_partitions",
                "delete_topics",
                "alter_partition",
                "alter_partition_reassignments",
                "assign_replicas_to_dirs",
                "elect_leaders",
                "balance_leaders",
                "elect_unclean_leaders",
            ),
        ),
    )
    for name in names
}
#: Kafka's sentences may differ; its errors' names may not. Its Java classes say nothing more.
_IGNORED: Final = ("message", "class")
#: A request without an answer: nothing was asked.
_NO_ANSWER: Final = ("advance_time",)


def run_vector(vector: Any) -> VectorOutcome:
    """Step by step, up to the first that differs: after it the clusters are not the same any more."""
    return asyncio.run(_run(vector))


async def _run(vector: Any) -> VectorOutcome:
    stage = ScenarioStage(vector["input"]["settings"])
    steps: Counter[tuple[str, bool]] = Counter()
    found: list[Difference] = []
    number = 0
    has_repetition = False
    await stage.begin()
    for number, (op, expected) in enumerate(zip(vector["input"]["ops"], vector["expected"]["steps"], strict=True)):
        found, has_repetition = await _step(stage, op, expected, f"step {number} ({op['op']})")
        steps[op["op"], not found] += 1
        if found or has_repetition:
            break
    stage.end()
    return VectorOutcome(vector["id"], found, steps, number if found else None, has_repetition)


async def _step(stage: ScenarioStage, op: Form, expected: Form, place: str) -> tuple[list[Difference], bool]:
    """The differences of the step, and whether they are in a repetition only."""
    operation = _OPERATIONS.get(op["op"])
    if operation is None:
        return [Difference(place, expected, "the controller has no such operation yet")], False
    got: Form = {"first_offset": stage.log.log_end_offset}
    try:
        answer = await operation(stage, op)
        if op["op"] not in _NO_ANSWER:
            got["response"] = answer
    except ApiError as refusal:
        got["exception"] = {"error": refusal.code.name}
    if stage.faults.sentences:
        return [Difference(place, expected, "; ".join(stage.faults.sentences))], False
    got["records"] = _in_order(stage.take_records())
    if "response" in got:
        got["response"] = _named(got["response"], stage)
    if "state" in expected:
        got["state"] = state_form(stage)
    wanted = expected | {"records": _in_order(expected["records"])}
    found = differences(wanted, got, place, ignores=_IGNORED)
    once = without_repetition(op, wanted) if found else None
    if once is not None and not differences(once, got, place, ignores=_IGNORED):
        return [], True
    return found, False


def _named(answer: Any, stage: ScenarioStage) -> Any:
    """The answer with names for ids of topics that were created only now."""
    if isinstance(answer, dict):
        return {name: _named(value, stage) for name, value in answer.items()}
    return stage.names.name(answer) if isinstance(answer, bytes) else answer


def _in_order(records: list[Form]) -> list[Form]:
    """Records in an order that has the same meaning, and is the same for both.

    Runs of changes are sorted by partition, as in the vectors: Kafka's own order among topics is a hash map's, and so
    is that of the configs of one topic. New partitions come last, by topic and partition: our log holds those of one
    shape next to each other.
    """
    ordered: list[Form] = []
    for (kind, topic), neighbours in groupby(records, key=_neighbours):
        run = list(neighbours)
        if kind == "PartitionChangeRecord":
            run.sort(key=_partition)
        elif topic is not None:
            run.sort(key=itemgetter("name"))
        ordered += run
    created = [record for record in ordered if record["type"] == "PartitionRecord"]
    return [record for record in ordered if record["type"] != "PartitionRecord"] + sorted(created, key=_partition)


def _neighbours(record: Form) -> tuple[str, str | None]:
    """Neighbours of equal value make a run: the kind, and of a topic's config the topic."""
    is_of_topic = record["type"] == "ConfigRecord" and record["resource_type"] == "TOPIC"
    return record["type"], record["resource_name"] if is_of_topic else None


def _partition(record: Form) -> tuple[int, int]:
    return int(record["topic_id"].removeprefix("t")), record["partition"]
