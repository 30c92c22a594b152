"""The things that are wrong with some partitions, why they are, and what can be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from quorate.controller.answers.causes import causes_of, missing_leaders, missing_replicas
from quorate.controller.answers.naming import named_rows
from quorate.controller.answers.remedies import remedies_for
from quorate.controller.api.answers.explain_models import ExplainedCause, ExplainedSymptom, ExplainReply, SymptomCode
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_filter import Condition, PartitionFilter
from quorate.controller.reads.partition_search import matching_rows
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows

#: The gravest first.
_SYMPTOMS: Final[tuple[tuple[Condition, SymptomCode, str], ...]] = (
    ("offline", "PARTITIONS_OFFLINE", "without a leader: nobody can read or write them"),
    ("under-min-isr", "PARTITIONS_UNDER_MIN_ISR", "under min.insync.replicas: writes with acks=all are refused"),
    ("under-replicated", "PARTITIONS_UNDER_REPLICATED", "under-replicated: they can bear the loss of fewer replicas"),
    ("reassigning", "REASSIGNMENTS_OPEN", "being reassigned: they wait for the replicas that are added"),
)


def subject_rows(
    image: MetadataImage, topic: str = "", partition: int | None = None, broker: int | None = None
) -> Rows:
    """int64[n], ascending: rows of the partitions that are meant; all of them where nothing is said.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION; BROKER_ID_NOT_REGISTERED, and no replica is on such a broker.
    """
    table = image.partitions
    if topic:
        found = image.topics.by_name.get(topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        if partition is None:
            return np.array([row for row in table.rows_of(found.id) if table.partition_id(row) >= 0], np.int64)
        row = table.row(found.id, partition)
        if row is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        return np.array([row], np.int64)
    if broker is None:
        return table.all_rows()
    rows = table.rows_with_replica(broker)
    if not len(rows) and broker not in image.cluster.brokers:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker} is registered, and none has replicas")
    return rows


def explain(
    image: MetadataImage, config: ControllerConfig, rows: Rows, limit: int, since_ms: Mapping[int, int]
) -> ExplainReply:
    """All that is wrong with these partitions.

    Args:
        limit: partitions that each symptom names at most.
        since_ms: when each broker that is absent came to be so, where that is known, in milliseconds since 1970.
    """
    symptoms = []
    leaders: list[ExplainedCause] = []
    offline = np.empty(0, np.int64)
    for condition, code, words in _SYMPTOMS:
        in_it = matching_rows(image, config, PartitionFilter(NamePatterns(), (condition,)))
        hit = np.intersect1d(in_it, rows, assume_unique=True)
        if not len(hit):
            continue
        causes = _causes(image, config, condition, hit, since_ms)
        if condition == "offline":
            offline, leaders = hit, causes
        symptoms.append(
            ExplainedSymptom(
                code=code,
                message=f"{'1 partition is' if len(hit) == 1 else f'{len(hit)} partitions are'} {words}",
                partitions=len(hit),
                topics=len(image.partitions.topics_in(hit)),
                share=len(hit) / len(rows),
                causes=causes,
                named=named_rows(image, hit, limit),
            )
        )
    remedies = []
    if symptoms:
        columns = image.partitions.gather(rows)
        replicas = causes_of(image, columns, columns.replicas & ~columns.isr, since_ms)
        remedies = remedies_for(image, config, offline, leaders, replicas)
    return ExplainReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        partitions=len(rows),
        symptoms=symptoms,
        remedies=remedies,
    )


def _causes(
    image: MetadataImage, config: ControllerConfig, condition: Condition, rows: Rows, since_ms: Mapping[int, int]
) -> list[ExplainedCause]:
    columns = image.partitions.gather(rows)
    match condition:
        case "offline":
            missing = missing_leaders(columns, elects_last_known=config.elects_last_known_leader)
        case "reassigning":
            missing = columns.adding & ~columns.isr
        case _:
            missing = missing_replicas(columns)
    return causes_of(image, columns, missing, since_ms)
