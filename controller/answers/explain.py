"""The things that are wrong with some partitions, why they are, and what can be done about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from quorate.controller.answers.causes import causes_of, missing_cells, missing_in, missing_leaders
from quorate.controller.answers.naming import named_rows
from quorate.controller.answers.remedies import remedies_for
from quorate.controller.answers.scope import Scope
from quorate.controller.api.answers.explain_models import ExplainedCause, ExplainedSymptom, ExplainReply, SymptomCode
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.rules import RuleSettings, awaited_replicas
from quorate.controller.partitions.view import rule_settings
from quorate.controller.reads.partition_filter import Condition
from quorate.snapshots.counts.cells import Cells
from quorate.snapshots.counts.tally import ADDING, IN_SYNC
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import Rows

#: The gravest first.
_SYMPTOMS: Final[tuple[tuple[Condition, SymptomCode, str], ...]] = (
    ("offline", "PARTITIONS_OFFLINE", "without a leader: nobody can read or write them"),
    ("under-min-isr", "PARTITIONS_UNDER_MIN_ISR", "under min.insync.replicas: writes with acks=all are refused"),
    ("under-replicated", "PARTITIONS_UNDER_REPLICATED", "under-replicated: they can bear the loss of fewer replicas"),
    ("reassigning", "REASSIGNMENTS_OPEN", "being reassigned: they wait for the replicas that are added"),
)


def explain(
    scope: Scope,
    config: ControllerConfig,
    limit: int,
    since_ms: Mapping[int, int],
    check: Callable[[], None] = lambda: None,
) -> ExplainReply:
    """All that is wrong with some partitions.

    Args:
        limit: partitions that each symptom names at most.
        since_ms: when each broker that is absent came to be so, where that is known, in milliseconds since 1970.
        check: see ``Rehearsal``.
    """
    image, count = scope.image, len(scope)
    symptoms = []
    leaders: list[ExplainedCause] = []
    offline = np.empty(0, np.int64)
    for condition, code, words in _SYMPTOMS:
        in_it = int(scope.tally.partitions.counts[scope.in_condition(config, condition, scope.tally.shapes)].sum())
        if not in_it:
            continue
        found = _InCondition.of(scope, config, condition, limit, check)
        missing = _missing(scope, config, condition) if found.missing is None else found.missing
        causes = causes_of(image, missing, since_ms)
        if condition == "offline":
            offline, leaders = found.rows, causes
        symptoms.append(
            ExplainedSymptom(
                code=code,
                message=f"{'1 partition is' if in_it == 1 else f'{in_it:,} partitions are'} {words}",
                partitions=in_it,
                topics=found.topics,
                share=in_it / count,
                causes=causes,
                named=named_rows(image, found.rows, limit),
            )
        )
    remedies = []
    if symptoms:
        behind = missing_cells(scope.tally, (scope.tally.replicas.keys[2] & IN_SYNC) == 0)
        remedies = remedies_for(image, config, offline, leaders, causes_of(image, behind, since_ms), check)
    return ExplainReply(
        state_offset=image.provenance.end_offset,
        state_time_ms=image.provenance.log_time_ms,
        partitions=count,
        symptoms=symptoms,
        remedies=remedies,
    )


def _missing(scope: Scope, config: ControllerConfig, condition: Condition) -> Cells:
    """The replicas that are missing in partitions in a condition, and are not only being added."""
    is_missing = (scope.tally.replicas.keys[2] & (IN_SYNC | ADDING)) == 0
    return missing_cells(scope.tally, is_missing & scope.in_condition(config, condition, scope.tally.replica_shapes))


class _InCondition:
    """The partitions in a condition, as they are gone through."""

    def __init__(self, image: MetadataImage, condition: Condition, limit: int) -> None:
        self._image = image
        self._condition = condition
        self._limit = limit
        self._kept: list[Rows] = []
        self._last_topic = b""
        #: Topics of which there are any.
        self.topics = 0
        #: Whom they wait for, by broker and directory; None where the counts tell it.
        self.missing: Cells | None = None

    @staticmethod
    def of(
        scope: Scope, config: ControllerConfig, condition: Condition, limit: int, check: Callable[[], None]
    ) -> _InCondition:
        """All of a scope that are in it; ``limit``, ``check``: as of ``explain``."""
        found, settings = _InCondition(scope.image, condition, limit), rule_settings(scope.image, config)
        for rows in scope.parts(config, condition):
            check()
            found.take(rows, settings)
        return found

    @property
    def rows(self) -> Rows:
        """The rows of the first ones; all of those without a leader."""
        return np.concatenate(self._kept) if self._kept else np.empty(0, np.int64)

    def take(self, rows: Rows, settings: RuleSettings) -> None:
        """Go on with these rows, which lie behind those before."""
        self._count_topics(rows)
        if self._condition == "offline" or sum(map(len, self._kept)) < self._limit:
            self._kept.append(rows)
        if self._condition not in ("offline", "reassigning"):
            return
        columns = self._image.partitions.gather(rows)
        if self._condition == "offline":
            awaited = missing_leaders(columns, settings)
        else:
            awaited = awaited_replicas(columns.replicas, columns.isr, columns.removing, columns.adding)
        parts = [(missing_in(columns, awaited), 1), *([] if self.missing is None else [(self.missing, 1)])]
        self.missing = Cells.total(parts, 2)

    def _count_topics(self, rows: Rows) -> None:
        # The rows of a topic lie together.
        stretches = TopicStretches.of(self._image.partitions.column(rows, "topic_ids"))
        first, last = stretches.ids[0].tobytes(), stretches.ids[-1].tobytes()
        self.topics += len(stretches) - (first == self._last_topic)
        self._last_topic = last
