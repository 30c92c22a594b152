"""Room for topics and partitions: how many the whole cluster may have, by the settings of the active controller.

Kafka has no such bound. Its answer that comes nearest is that of a policy: the request is understood and not wanted.
"""

from __future__ import annotations

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage


class Room:
    """The topics and partitions that there may still be, while one request is decided."""

    def __init__(self, image: MetadataImage, config: ControllerConfig) -> None:
        self._config = config
        self._topics = len(image.topics)
        self._partitions = len(image.partitions)

    def check(self, topics: int, partitions: int) -> None:
        """Look whether there is room for so much more.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        topics_max, partitions_max = self._config.topics_max, self._config.partitions_max
        if topics and self._topics + topics > topics_max:
            message = (
                f"There are {self._topics} topics, and limits.topics_max is {topics_max}: delete some, or raise it."
            )
            raise ApiError(ErrorCode.POLICY_VIOLATION, message)
        if self._partitions + partitions > partitions_max:
            message = (
                f"There are {self._partitions} partitions, and {partitions} more would be above limits.partitions_max"
            )
            raise ApiError(ErrorCode.POLICY_VIOLATION, f"{message}, which is {partitions_max}.")

    def take(self, topics: int, partitions: int) -> None:
        """Take so much of it, which ``check`` has found."""
        self._topics += topics
        self._partitions += partitions
