"""Leader elections: after a broker comes or goes, on request, and as background duties.

Whole passes work on columns; no Python object per partition exists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.partitions.columns import ELECT_PREFERRED, ELECT_UNCLEAN, PartitionChanges, PartitionTargets
from quorate.controller.partitions.preferred_counts import COUNTED_PAGES_PER_PASS_MAX, PreferredCounts
from quorate.controller.partitions.rules import decide_changes, decide_patterns
from quorate.controller.partitions.view import PartitionView, rule_settings, view_partitions, view_runs
from quorate.controller.protocol import (
    ElectionPartitionResult,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.page_access import is_leaderless, is_not_led_by_preferred
from quorate.snapshots.table.pages import PAGE_ROWS, Page, PagePredicate
from quorate.snapshots.table.slot_layout import PREFERRED_SLOT

#: Elections that one background pass holds (Kafka's ``MAX_ELECTIONS_PER_IMBALANCE``).
ELECTIONS_PER_PASS_MAX: Final = 1_000
#: Rows that a background pass looks at before it asks whether it has enough.
_ROWS_AT_ONCE: Final = 2_048
#: ... and how often it asks: it may find nothing among many, and the loop has others to serve.
_LOOKS_PER_PASS_MAX: Final = 2
#: Pages that it searches for such rows: a quarter of a millisecond of work where there are none, twice that while a
#: broker is lost, and up to ten times that where a machine has others to serve.
_PAGES_PER_PASS_MAX: Final = 16

Rows = NDArray[np.int64]


def leader_and_isr_changes(
    image: MetadataImage,
    config: ControllerConfig,
    rows: Rows,
    *,
    broker_to_remove: int | None = None,
    broker_to_add: int | None = None,
    is_unclean_shutdown: bool = False,
) -> list[PartitionChangeRun]:
    """Elect leaders for partitions while a broker goes or comes (Kafka's ``generateLeaderAndIsrUpdates``).

    Args:
        broker_to_remove: leaves the ISR, and may not lead.
        broker_to_add: may lead, though the image still has it fenced.
        is_unclean_shutdown: the broker to remove may have lost data, so it leaves the ELR as well.
    """
    if not len(rows):
        return []
    view = view_partitions(image, config, rows, broker_to_add=broker_to_add, broker_to_remove=broker_to_remove)
    isr, unclean_shutdown = None, None
    if broker_to_remove is not None:
        gone = view.columns.slots_in([broker_to_remove])
        isr = view.rows.isr & ~gone
        unclean_shutdown = gone if is_unclean_shutdown else None
    targets = PartitionTargets(
        acceptable=view.acceptable,
        min_isr=view.min_isr,
        election=view.election,
        isr=isr,
        unclean_shutdown=unclean_shutdown,
    )
    changes, kinds = decide_patterns(view.rows, targets, rule_settings(image, config))
    return view_runs(image, view, changes, kinds)


def decide_elect_leaders(
    image: MetadataImage, config: ControllerConfig, request: ElectLeadersRequest
) -> Decision[ElectLeadersResponse]:
    """Hold the elections that an operator asks for. An unclean one does not ask whether the topic allows it."""
    kind = ELECT_PREFERRED if request.election_type == "PREFERRED" else ELECT_UNCLEAN
    results: dict[str, list[ElectionPartitionResult]] = defaultdict(list)
    wanted = _wanted_partitions(image, request, kind, results)
    runs: list[PartitionChangeRun] = []
    if wanted:
        rows = np.array([row for _, _, row in wanted], np.int64)
        outcomes, runs = _elect(image, config, rows, kind)
        for (topic, partition, _), code in zip(wanted, outcomes, strict=True):
            if request.topic_partitions is None and code == ErrorCode.ELECTION_NOT_NEEDED:
                continue
            message = _MESSAGES.get(code)
            results[topic].append(
                ElectionPartitionResult(partition_id=partition, error_code=code, error_message=message)
            )
    answers = [
        ElectionTopicResult(topic=topic, partition_results=sorted(found, key=lambda result: result.partition_id))
        for topic, found in results.items()
    ]
    return Decision(runs, ElectLeadersResponse(replica_election_results=answers))


_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


def _wanted_partitions(
    image: MetadataImage,
    request: ElectLeadersRequest,
    kind: int,
    results: dict[str, list[ElectionPartitionResult]],
) -> list[tuple[str, int, int]]:
    """(topic, partition, row) of the partitions to elect in; those that do not exist get their answer here."""
    if request.topic_partitions is None:
        return list(_named(image, _rows_in_need(image, kind)))
    wanted: dict[tuple[str, int], int] = {}
    for asked in request.topic_partitions:
        topic = image.topics.by_name.get(asked.topic)
        for partition in asked.partitions:
            row = None if topic is None else image.partitions.row(topic.id, partition)
            if row is not None:
                wanted[asked.topic, partition] = row
                continue
            what = f"topic as {asked.topic}" if topic is None else f"partition as {asked.topic}-{partition}"
            results[asked.topic].append(
                ElectionPartitionResult(
                    partition_id=partition,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message=f"No such {what}",
                )
            )
    return [(topic_name, partition, row) for (topic_name, partition), row in wanted.items()]


def _rows_in_need(image: MetadataImage, kind: int) -> Rows:
    table = image.partitions
    return table.rows_not_led_by_preferred() if kind == ELECT_PREFERRED else table.rows_without_leader()


def _named(image: MetadataImage, rows: Rows) -> Iterable[tuple[str, int, int]]:
    table = image.partitions
    for row in rows.tolist():
        topic = image.topics.by_id.get(table.topic_id(row))
        yield ("" if topic is None else topic.name), table.partition_id(row), row


def _elect(
    image: MetadataImage, config: ControllerConfig, rows: Rows, kind: int
) -> tuple[list[ErrorCode], list[PartitionChangeRun]]:
    """Elect in the rows that need it; an answer per row."""
    view = view_partitions(image, config, rows)
    changes = _hold(image, config, view, kind)
    is_needed = view.rows.leader != PREFERRED_SLOT if kind == ELECT_PREFERRED else view.rows.leader < 0
    changes = replace(changes, has_change=changes.has_change & is_needed)
    refused = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if kind == ELECT_UNCLEAN:
        refused = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    answers = np.where(is_needed, np.where(changes.has_change, 0, int(refused)), int(ErrorCode.ELECTION_NOT_NEEDED))
    return [ErrorCode(answer) for answer in answers.tolist()], view_runs(image, view, changes)


def _hold(image: MetadataImage, config: ControllerConfig, view: PartitionView, kind: int) -> PartitionChanges:
    """Hold one kind of election in all rows of a view."""
    election = np.full(len(view.columns), kind, np.int64)
    targets = PartitionTargets(acceptable=view.acceptable, min_isr=view.min_isr, election=election)
    return decide_changes(view.rows, targets, rule_settings(image, config))


def decide_balance_leaders(
    image: MetadataImage, config: ControllerConfig, first_row: int = 0, counts: PreferredCounts | None = None
) -> Decision[int | None]:
    """Give partitions back to their preferred leaders, as far as one pass goes.

    The reply is the row that the next pass is to begin at, None if there is nothing to look at any more. Should rows
    have come to mean other partitions by then, some wait for the next round.

    Args:
        counts: what an earlier pass counted of this image or a relative of it; None: all of it is counted here.
    """
    imbalanced = None
    if config.leader_imbalance_percentage is not None:
        known = PreferredCounts() if counts is None else counts
        if not known.refresh(image.partitions, None if counts is None else COUNTED_PAGES_PER_PASS_MAX):
            return Decision((), first_row, is_atomic=False, is_internal=True)
        imbalanced = known.missing_more_than(config.leader_imbalance_percentage)
    active = np.array(image.cluster.active_brokers(), np.int32)
    is_wanted = partial(_may_be_balanced, imbalanced, active)
    return _background_pass(image, config, is_wanted, first_row, ELECT_PREFERRED)


def decide_elect_unclean_leaders(
    image: MetadataImage, config: ControllerConfig, first_row: int = 0
) -> Decision[int | None]:
    """Elect uncleanly where nobody leads and the topic allows it; reply as of ``decide_balance_leaders``."""
    return _background_pass(image, config, is_leaderless, first_row, ELECT_UNCLEAN)


def _may_be_balanced(imbalanced: NDArray[np.int32] | None, active: NDArray[np.int32], page: Page) -> NDArray[np.bool_]:
    """Rows that one of the imbalanced brokers (None: any) is preferred for and does not lead, and another might.

    Where the preferred one is not active and the leader is, all stays as it is: after the loss of a broker these are
    a share of all partitions, and would be decided again in every round.
    """
    is_missed = is_not_led_by_preferred(page)
    at = np.flatnonzero(is_missed)
    if len(at):
        preferred, leader_slots = page.slots[PREFERRED_SLOT, at], page.leader_slots[at]
        is_led = (leader_slots >= 0) & _is_one_of(active, page.slots[leader_slots, at])
        is_missed[at] = _is_one_of(active, preferred) | ~is_led
        if imbalanced is not None:
            is_missed[at] &= _is_one_of(imbalanced, preferred)
    return is_missed


def _is_one_of(brokers: NDArray[np.int32], ids: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each is among the brokers, which ascend: a tenth of the time of ``np.isin``, which is for many."""
    if not len(brokers):
        return np.zeros(len(ids), np.bool_)
    found: NDArray[np.bool_] = brokers[np.minimum(np.searchsorted(brokers, ids), len(brokers) - 1)] == ids
    return found


def _background_pass(
    image: MetadataImage, config: ControllerConfig, is_wanted: PagePredicate, first_row: int, kind: int
) -> Decision[int | None]:
    """Elections of one kind in the first rows that have any, not more than a pass may hold or look at."""
    table = image.partitions
    end = (first_row // PAGE_ROWS + _PAGES_PER_PASS_MAX) * PAGE_ROWS
    runs: list[PartitionChangeRun] = []
    left = ELECTIONS_PER_PASS_MAX
    next_row = end if end < table.row_end else None
    for look, rows in enumerate(table.select_parts(is_wanted, first_row, end, _ROWS_AT_ONCE)):
        if look == _LOOKS_PER_PASS_MAX:
            next_row = int(rows[0])
            break
        view = view_partitions(image, config, rows)
        if kind == ELECT_UNCLEAN and not view.allows_unclean.any():
            continue
        changes = _hold(image, config, view, kind)
        if kind == ELECT_UNCLEAN:
            changes.has_change[~view.allows_unclean] = False
        found = np.flatnonzero(changes.has_change)
        changes.has_change[found[left:]] = False
        runs += view_runs(image, view, changes)
        if left <= len(found):
            next_row = int(view.columns.rows[found[left - 1]]) + 1
            break
        left -= len(found)
    return Decision(runs, next_row, is_atomic=False, is_internal=True)
