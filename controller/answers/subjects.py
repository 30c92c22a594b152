"""The subjects of an explanation: some partitions, or one with its reassignment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from quorate.controller.answers.explain import explain
from quorate.controller.answers.explain_reassignment import cancellation, explain_reassignment
from quorate.controller.answers.scope import Scope
from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows

_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})


class AskedPartitions(NamedTuple):
    """Partitions: those of a topic, one of them, or those with a replica on a broker; all where nothing is said."""

    topic: str = ""
    partition: int | None = None
    broker: int | None = None

    def scope(self, image: MetadataImage) -> Scope:
        """These partitions of an image.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION; BROKER_ID_NOT_REGISTERED, and no replica is on such a broker.
        """
        if self.topic:
            return Scope.of_rows(image, self.rows_of_topic(image))
        if self.broker is None:
            return Scope.of_all(image)
        scope = Scope.of_broker(image, self.broker)
        if not len(scope) and self.broker not in image.cluster.brokers:
            message = f"no broker {self.broker} is registered, and none has replicas"
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
        return scope

    def reassigned(self, image: MetadataImage) -> tuple[Uuid, int] | None:
        """Topic and number of the one partition that is asked about, if it is being reassigned."""
        topic, table = image.topics.by_name.get(self.topic), image.partitions
        row = None if topic is None or self.partition is None else table.row(topic.id, self.partition)
        if row is None or not table.partition(row).is_reassigning:
            return None
        return table.topic_id(row), table.partition_id(row)

    def rows_of_topic(self, image: MetadataImage) -> Rows:
        """int64[n], ascending: the rows of those of a topic.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        table, found = image.partitions, image.topics.by_name.get(self.topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {self.topic!r}")
        if self.partition is None:
            extent = table.rows_of(found.id)
            rows = np.arange(extent.start, extent.stop)
            return rows[table.gather_partition_ids(rows) >= 0]
        row = table.row(found.id, self.partition)
        if row is None:
            message = f"topic {self.topic} has no partition {self.partition}"
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        return np.array([row], np.int64)


class Moments(NamedTuple):
    """The moments that no state holds, in milliseconds since 1970 by broker; without those that are not known."""

    #: When each broker that is fenced, shutting down or unregistered came to be so.
    absent_ms: Mapping[int, int] = _UNKNOWN
    #: When each replica of the one partition that is asked about came to be added.
    added_ms: Mapping[int, int] = _UNKNOWN


def explain_subject(
    image: MetadataImage,
    config: ControllerConfig,
    subject: AskedPartitions,
    limit: int,
    moments: Moments,
    check: Callable[[], None] = lambda: None,
) -> ExplainReply:
    """All that is wrong with some partitions; of a single one also where its reassignment, if one is open, has got to.

    ``limit``: partitions that each symptom names at most. ``check``: see ``Rehearsal``.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED.
    """
    found = explain(subject.scope(image), config, limit, moments.absent_ms, check)
    if subject.partition is None:
        return found
    rows = subject.rows_of_topic(image)
    moving = explain_reassignment(image, rows, moments.absent_ms, moments.added_ms)
    if moving is None or moving.progress != "STALLED":
        return found.model_copy(update={"reassignment": moving})
    instead = cancellation(image, config, int(rows[0]), check)
    return found.model_copy(update={"reassignment": moving, "remedies": [*found.remedies, *instead]})
