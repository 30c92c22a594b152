"""Parameters of the routes of labels."""

from __future__ import annotations

from pydantic import Field

from quorate.controller.api.models import ReadParameters
from quorate.controller.protocol.labels import LabelKind


class LabelParameters(ReadParameters):
    """The labels wanted: those that meet all that is given; without anything all of them."""

    resource: str | None = Field(default=None, min_length=1, max_length=1024)
    """`cluster`, `topic:NAME`, `partition:TOPIC-NUMBER`, `broker:ID` or `record:NAME`."""
    kind: LabelKind | None = None
    """Those of all resources of a kind."""
    topic: str | None = Field(default=None, min_length=1, max_length=1024)
    """Those of a topic and of its partitions."""
    namespace: str | None = Field(default=None, min_length=1, max_length=1024)
    """Those whose keys begin with this and a slash."""
    after: str | None = Field(default=None, min_length=1, max_length=2048)
    """`next_after` of the page before."""
    limit: int = Field(default=1_000, ge=1, le=1_000)
    """Most labels of one page."""
