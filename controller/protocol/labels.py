"""Labels: changes and description. Kafka has nothing like them, so these messages are our own."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from quorate.controller.protocol.types import Message, Text

#: Changes, and conditions, of one request: with the longest values still one batch of the log.
LABEL_ITEMS_MAX: Final = 1_000

LabelKind = Literal["cluster", "topic", "partition", "broker", "record"]

#: Each is checked where it is used, by rules with words of their own.
LabelText = Annotated[Text, Field(min_length=1)]


class LabelEntry(Message):
    """One label, and what it is, is to be, or has to be."""

    #: ``cluster``, ``topic:NAME``, ``partition:TOPIC-NUMBER``, ``broker:ID``, ``record:NAME``.
    resource: LabelText
    #: ``NAMESPACE/NAME``.
    key: LabelText
    #: None = there is no such label.
    value: Text | None


class AlterLabelsRequest(Message):
    """Changes that are made together, if all conditions hold, or not at all."""

    #: What labels are to be; None removes one.
    changes: Annotated[list[LabelEntry], Field(max_length=LABEL_ITEMS_MAX)]
    #: What labels have to be before; None: not there.
    conditions: Annotated[list[LabelEntry], Field(max_length=LABEL_ITEMS_MAX)] = Field(default_factory=list)
    #: Answer as if, and write nothing.
    validate_only: bool = False


class AlterLabelsResponse(Message):
    """All conditions held, and all changes were made."""

    #: How many labels are not as they were.
    changed: int


class DescribedLabel(Message):
    """One label."""

    resource: str
    key: str
    value: str


class DescribeLabelsResponse(Message):
    """By resource and key."""

    labels: list[DescribedLabel]
    #: Labels in the whole cluster, wanted or not.
    count: int
    #: Where the next page begins, as ``after``; None: this was the last.
    next_after: str | None
