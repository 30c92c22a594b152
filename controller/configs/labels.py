"""Changes of labels, their end with what they are on, and their description.

A request's changes are made together, if all of its conditions hold, or not at all: so programs that compare before
they set can agree on who does what. Labels go with their topic, partition or broker, in the change that removes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from quorate.controller.configs.label_rules import (
    LABELS_MAX,
    LABELS_PER_RESOURCE_MAX,
    check_label,
    check_resource_exists,
    shown,
)
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol.labels import (
    AlterLabelsRequest,
    AlterLabelsResponse,
    DescribedLabel,
    DescribeLabelsResponse,
    LabelEntry,
    LabelKind,
)
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import ConfigRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.image.labels import Label, config_of

# --- changes -----------------------------------------------------------------------------------------


def decide_alter_labels(image: MetadataImage, request: AlterLabelsRequest) -> Decision[AlterLabelsResponse]:
    """Change labels if all conditions hold. What is so already is not written.

    Raises:
        ApiError: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, a label that cannot be, or one that is named twice;
            INVALID_UPDATE_VERSION, a condition does not hold (``details``: the label, what it has to be, what it is);
            UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED, there is nothing to put a label on.
        LimitExceeded: POLICY_VIOLATION, too many labels.
    """
    for entries, what in ((request.changes, "change"), (request.conditions, "condition")):
        _check_named_once(entries, what)
        for entry in entries:
            check_label(entry)
    for condition in request.conditions:
        _check_holds(image, condition)
    changes = [one for one in request.changes if image.labels.of(one.resource).get(one.key) != one.value]
    for change in changes:
        if change.value is not None:
            check_resource_exists(image, change.resource)
    _check_counts(image, changes)
    records = [_record(Label(change.resource, change.key), change.value) for change in changes]
    return Decision(() if request.validate_only else records, AlterLabelsResponse(changed=len(changes)))


def _record(label: Label, value: str | None) -> VersionedRecord:
    return VersionedRecord(ConfigRecord(*config_of(label), value), 0)


def _check_named_once(entries: Iterable[LabelEntry], what: str) -> None:
    counts = Counter(Label(entry.resource, entry.key) for entry in entries)
    for label, count in counts.items():
        if count > 1:
            problem = f"Label {shown(label.key)} of {shown(label.resource)} is named by {count} {what}s."
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def _check_holds(image: MetadataImage, condition: LabelEntry) -> None:
    present = image.labels.of(condition.resource).get(condition.key)
    if present == condition.value:
        return
    found = "is not there" if present is None else f"is {shown(present)}"
    wanted = "must not be there" if condition.value is None else f"must be {shown(condition.value)}"
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Label {condition.key} of {condition.resource} {found}, and {wanted} for this change.",
        {"resource": condition.resource, "key": condition.key, "expected": condition.value, "present": present},
    )


def _check_counts(image: MetadataImage, changes: Iterable[LabelEntry]) -> None:
    growth: Counter[str] = Counter()
    for change in changes:
        is_there = change.key in image.labels.of(change.resource)
        growth[change.resource] += (change.value is not None) - is_there
    for resource, grown in growth.items():
        count = len(image.labels.of(resource)) + grown
        if grown > 0 and count > LABELS_PER_RESOURCE_MAX:
            problem = f"{resource} would have {count} labels; {LABELS_PER_RESOURCE_MAX} is the most."
            raise LimitExceeded(problem, ErrorCode.POLICY_VIOLATION)
    total = image.labels.count + growth.total()
    if growth.total() > 0 and total > LABELS_MAX:
        problem = f"The cluster would have {total} labels; {LABELS_MAX} is the most."
        raise LimitExceeded(problem, ErrorCode.POLICY_VIOLATION)


# --- their end ---------------------------------------------------------------------------------------


def labels_gone_with_topic(image: MetadataImage, topic: Topic) -> list[VersionedRecord]:
    """The records that remove the labels of a topic and of its partitions."""
    resources = image.labels.resources
    if not resources:
        return []
    begin = f"partition:{topic.name}-"
    partitions = len(image.partitions.rows_of(topic.id))
    labelled: Iterable[str]
    if partitions <= len(resources):
        labelled = (f"{begin}{number}" for number in range(partitions))
    else:
        # Topics may have millions of partitions, and few labels.
        labelled = (name for name in resources if name.startswith(begin) and name[len(begin) :].isdigit())
    return [record for name in (f"topic:{topic.name}", *labelled) for record in _all_gone(image, name)]


def labels_gone_with_broker(image: MetadataImage, broker_id: int) -> list[VersionedRecord]:
    """The records that remove a broker's labels."""
    return list(_all_gone(image, f"broker:{broker_id}"))


def _all_gone(image: MetadataImage, resource: str) -> Iterator[VersionedRecord]:
    return (_record(Label(resource, key), None) for key in sorted(image.labels.of(resource)))


# --- description -------------------------------------------------------------------------------------


class LabelFilter(NamedTuple):
    """The labels wanted: those that meet all that is given."""

    resource: str | None = None
    kind: LabelKind | None = None
    #: The topic itself and its partitions.
    topic: str | None = None
    namespace: str | None = None

    def wants_resource(self, resource: str) -> bool:
        """Whether labels of this resource may be wanted."""
        kind, _, name = resource.partition(":")
        if self.topic is not None:
            of_topic = name if kind == "topic" else name.rpartition("-")[0] if kind == "partition" else None
            if of_topic != self.topic:
                return False
        return self.resource in (None, resource) and self.kind in (None, kind)


def describe_labels(image: MetadataImage, wanted: LabelFilter, after: str | None, limit: int) -> DescribeLabelsResponse:
    """A page of labels, by resource and key.

    Args:
        after: ``RESOURCE/KEY``, of the last label that is known already; None: the first page.
        limit: of this page.
    """
    labels = list(islice(_labels_after(image, wanted, after or ""), limit + 1))
    last = f"{labels[limit - 1].resource}/{labels[limit - 1].key}" if len(labels) > limit else None
    return DescribeLabelsResponse(labels=labels[:limit], count=image.labels.count, next_after=last)


def _labels_after(image: MetadataImage, wanted: LabelFilter, after: str) -> Iterator[DescribedLabel]:
    first, _, last_key = after.partition("/")
    resources = image.labels.resources if wanted.resource is None else [wanted.resource]
    for resource in sorted(name for name in resources if name >= first and wanted.wants_resource(name)):
        for key, value in sorted(image.labels.of(resource).items()):
            is_behind = resource > first or key > last_key
            if is_behind and wanted.namespace in (None, key.partition("/")[0]):
                yield DescribedLabel(resource=resource, key=key, value=value)
