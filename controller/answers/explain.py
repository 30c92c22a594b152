"""The things that are wrong with some partitions, why they are, and what can be done about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from quorate.controller.answers.causes import causes_of, missing_leaders
from quorate.controller.answers.naming import named_rows
from quorate.controller.answers.remedies import remedies_for
from quorate.controller.api.answers.explain_models import ExplainedCause, ExplainedSymptom, ExplainReply, SymptomCode
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.rules import awaited_replicas
from quorate.controller.partitions.view import rule_settings
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_conditions import missing_replicas
from quorate.controller.reads.partition_filter import Condition, PartitionFilter
from quorate.controller.reads.partition_search import matching_rows
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows

#: The gravest first.
_SYMPTOMS: Final[tuple[tuple[Condition, SymptomCode, str], ...]] = (
    ("offline", "PARTITIONS_OFFLINE", "without a leader: nobody can read or write them"),
    ("under-min-isr", "PARTITIONS_UNDER_MIN_ISR", "under min.insync.replicas: writes with acks=all are refused"),
    ("under-replicated", "PARTITIONS_UNDER_REPLICATED", "under-replicated: they can bear the loss of fewer replicas"),
    ("reassigning", "REASSIGNMENTS_OPEN", "being reassigned: they wait for the replicas that are added"),
)


def explain(
    image: MetadataImage,
    config: ControllerConfig,
    rows: Rows,
    limit: int,
    since_ms: Mapping[int, int],
    check: Callable[[], None] = lambda: None,
) -> ExplainReply:
    """All that is wrong with these partitions.

    Args:
        limit: partitions that each symptom names at most.
        since_ms: when each broker that is absent came to be so, where that is known, in milliseconds since 1970.
        check: see ``Rehearsal``.
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
        remedies = remedies_for(image, config, offline, leaders, replicas, check)
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
            missing = missing_leaders(columns, rule_settings(image, config))
        case "reassigning":
            missing = awaited_replicas(columns.replicas, columns.isr, columns.removing, columns.adding)
        case _:
            missing = missing_replicas(columns.replicas, columns.isr, columns.adding)
    return causes_of(image, columns, missing, since_ms)
