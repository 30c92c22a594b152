"""Parameters of the searches for topics and partitions."""

from __future__ import annotations

from typing import Final, get_args

from pydantic import Field, field_validator

from quorate.controller.api.models import ReadParameters
from quorate.controller.reads.name_patterns import PATTERNS_CHARS_MAX, NamePatterns
from quorate.controller.reads.partition_filter import Condition, PartitionFilter
from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

_CONDITIONS: Final = "|".join(get_args(Condition))
#: A topic's name, a dash, and a partition number.
_CURSOR_CHARS_MAX: Final = TOPIC_NAME_CHARS_MAX + 11


class SearchParameters(ReadParameters):
    """The conditions of a search: all that are given must hold."""

    names: str = Field(default="", max_length=PATTERNS_CHARS_MAX)
    """Topics by name, separated by commas; `*` stands for any characters. Empty: all."""
    conditions: str = Field(default="", max_length=200, pattern=rf"^(({_CONDITIONS})(,({_CONDITIONS}))*)?$")
    """Partitions in at least one of these conditions, separated by commas. Empty: in any."""
    broker: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Partitions with this broker among the replicas."""
    leader: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Partitions led by this broker."""

    @field_validator("names")
    @classmethod
    def _has_patterns(cls, text: str) -> str:
        NamePatterns.parse(text)
        return text

    @property
    def wanted(self) -> PartitionFilter:
        """The same as the search takes it."""
        conditions = tuple(condition for condition in get_args(Condition) if condition in self.conditions.split(","))
        return PartitionFilter(NamePatterns.parse(self.names), conditions, self.broker, self.leader)


class TopicListParameters(SearchParameters):
    """A page of the topics, by name; those with a partition that fits, where conditions or brokers are given."""

    with_overrides: bool = False
    """Only topics with configs of their own."""
    after: str = Field(default="", max_length=TOPIC_NAME_CHARS_MAX)
    """Only names greater than this: the `next_after` of the page before."""
    limit: int = Field(default=100, ge=1, le=1000)
    """Most topics in the answer."""


class PartitionListParameters(SearchParameters):
    """A page of the partitions, by topic name and partition number."""

    after: str = Field(default="", max_length=_CURSOR_CHARS_MAX, pattern=r"^(.+-[0-9]{1,10})?$")
    """Only what comes behind this partition, as `orders-17`: the `next_after` of the page before."""
    limit: int = Field(default=100, ge=1, le=1000)
    """Most partitions in the answer."""

    @property
    def after_partition(self) -> tuple[str, int] | None:
        """The cursor as topic and partition number."""
        topic, _, number = self.after.rpartition("-")
        return (topic, int(number)) if topic else None
