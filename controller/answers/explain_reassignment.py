"""The reassignment of one partition: its progress, what it waits for, and what cancelling it would bring."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping

from quorate.controller.answers.causes import ABSENT, causes_of, missing_in
from quorate.controller.answers.election_costs import elections_of, how_led, risk_of
from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.api.answers.explain_models import (
    ExplainedCause,
    ExplainedReassignment,
    ExplainedRemedy,
    ReassignedReplica,
)
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.rules import awaited_replicas
from quorate.controller.protocol import ReassignablePartition, ReassignableTopic
from quorate.metadata_log.errors import ApiError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows


def explain_reassignment(
    image: MetadataImage, rows: Rows, absent_ms: Mapping[int, int], added_ms: Mapping[int, int]
) -> ExplainedReassignment | None:
    """That of the partition in the only row; None where none is open.

    ``absent_ms``, ``added_ms``: as in ``subjects.Moments``.
    """
    columns = image.partitions.gather(rows)
    (partition,) = (image.partitions.partition(row) for row in rows.tolist())
    if not partition.is_reassigning:
        return None
    awaited = awaited_replicas(columns.replicas, columns.isr, columns.removing, columns.adding)
    (awaited_ids,) = columns.ids_in(awaited)
    absent = causes_of(image, missing_in(columns, columns.replicas & ~columns.isr), absent_ms)
    causes = {cause.broker: cause for cause in absent}
    # One that is there copies by itself; what else keeps a replica away somebody has to mend.
    is_held_up = any(causes[broker].code != "NOT_CAUGHT_UP" for broker in awaited_ids)
    target = partition.assignment.target_replicas
    return ExplainedReassignment(
        progress="STALLED" if is_held_up or not partition.has_leader else "COPYING" if awaited_ids else "ENDING",
        before=list(partition.assignment.original_replicas),
        target=list(target),
        leader=partition.leader if partition.has_leader else None,
        since_ms=min((added_ms[broker] for broker in partition.adding_replicas if broker in added_ms), default=None),
        replicas=[
            ReassignedReplica(
                broker=broker,
                is_added=broker in partition.adding_replicas,
                is_in_sync=broker in partition.isr,
                is_awaited=broker in awaited_ids,
                cause=None if broker in partition.isr else causes[broker].code,
                since_ms=_since_ms(causes[broker], added_ms) if broker in causes else None,
            )
            for broker in target
        ],
    )


def _since_ms(cause: ExplainedCause, added_ms: Mapping[int, int]) -> int | None:
    return cause.since_ms if cause.code in ABSENT else added_ms.get(cause.broker)


def cancellation(
    image: MetadataImage,
    config: ControllerConfig,
    row: int,
    check: Callable[[], None] = lambda: None,
) -> list[ExplainedRemedy]:
    """The outcome of cancelling the reassignment of the partition in a row, tried on the state.

    None where it would be refused. ``check``: see ``Rehearsal``.
    """
    rehearsal = Rehearsal(image, config, check=check)
    table = image.partitions
    topic, partition = image.topics.by_id[table.topic_id(row)].name, table.partition_id(row)
    cancelled = ReassignablePartition(partition_index=partition, replicas=None)
    try:
        rehearsal.reassign([ReassignableTopic(name=topic, partitions=[cancelled])])
    except ApiError:  # nobody who would stay is in sync, or nobody would stay
        return []
    before, after = table.partition(row), rehearsal.image.partitions.partition(row)
    is_led_again = after.has_leader and not before.has_leader
    led = f", and it is led again{how_led(rehearsal.elected)}" if is_led_again else ""
    return [
        ExplainedRemedy(
            code="CANCEL_REASSIGNMENT",
            message=f"or cancel it: the replicas are {', '.join(map(str, after.replicas))} again{led}",
            command=_command(topic, partition, list(after.replicas)),
            broker=None,
            led_again=int(is_led_again),
            replicas=0,
            elections=elections_of(rehearsal.elected),
            risk=risk_of(rehearsal.elected),
        )
    ]


def _command(topic: str, partition: int, replicas: list[int]) -> str:
    """For this partition and no other; which replicas the file names does not matter."""
    file = {"version": 1, "partitions": [{"topic": topic, "partition": partition, "replicas": replicas}]}
    return f"printf %s {shlex.quote(json.dumps(file, separators=(',', ':')))} | quorate reassign cancel - --yes"
