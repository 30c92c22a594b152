"""Shapes of `GET /v1/audit` and what is below it. Every field is always present, null where there is nothing to say."""

from __future__ import annotations

from pydantic import Field

from quorate.controller.api.models import HttpModel, OffsetField


class AuditParameters(HttpModel):
    """The records asked about."""

    start_offset: OffsetField = 0
    """First record."""
    end_offset: OffsetField | None = None
    """(Exclusive) end of the records; without it all that follow."""
    limit: int = Field(default=1_000, ge=1, le=10_000)
    """Lines of an answer; where several epochs decided at one offset, a few more."""


class AuditLineReply(HttpModel):
    """One event that wrote records."""

    epoch: int
    """In which the node decided. What was decided in an epoch and did not commit is decided anew in a later one: a line
    is about a record where offset and epoch are the record's."""
    base_offset: int
    end_offset: int
    """(Exclusive) end of its records; of a pass over many partitions of its first slice."""
    event: str
    principal: str | None
    """In whose name it was asked for; null where the controller acted by itself."""
    address: str | None
    """From where."""
    request_id: str | None
    proof: str | None
    """How it was proved who that is: `certificate`, `token`, `scram`, `uid`, `delegation-token`, `anonymous`; `said`:
    where no authorizer decides, by nothing; null: the controller acted by itself, or the line is an older one."""
    proxy: str | None
    """The principal that asked in this one's name, by X-Quorate-Principal."""
    allowed_by: str | None
    """The ACL, or the rule, that allowed it; of a request about several things that of the last."""


class AuditReply(HttpModel):
    """A page of what the answering node wrote down about the events that it decided."""

    node_id: int
    first_offset: int | None
    """Base offset of the oldest line that is kept; null: there is none."""
    dropped: int
    """Lines that could not be written since the process started."""
    lines: list[AuditLineReply]
    """By base offset and epoch: of all events that wrote between `start_offset` and `next_offset`."""
    next_offset: int | None
    """`start_offset` of the next page; null at the end."""


class RefusalParameters(HttpModel):
    """The number of refusals wanted."""

    limit: int = Field(default=1_000, ge=1, le=10_000)
    """Lines of the answer: the newest."""


class RefusalReply(HttpModel):
    """Requests of one kind that were refused for one reason, within about half a second."""

    time_ms: int
    """Of the first of them, milliseconds since 1970."""
    times: int
    """How many; of a request about several things, how many of these."""
    request: str | None
    """Method and route; null: refusals of so many kinds, or so many a second, that they were only counted."""
    principal: str | None
    """In whose name it was asked; null where the request was refused before that was known."""
    address: str | None
    request_id: str | None
    """Of the first of them."""
    error: str | None
    """Kafka's name of the error."""
    message: str | None
    """Of the first of them; its first 300 characters."""
    proof: str | None
    """How it was proved who asked, as in a line of the audit; null: it was refused before that was known, or the line
    is an older one."""


class RefusalsReply(HttpModel):
    """The refusals of the answering node."""

    node_id: int
    refusals: list[RefusalReply]
    """Oldest first."""
