"""Shapes that only HTTP has: errors, paging, health, the feed's parameters. Requests and replies proper: `protocol`.

Every field is always present in a reply, null where there is nothing to say.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from quorate.controller.api.attribute_docs import attribute_docs
from quorate.controller.protocol.configs import ResourceTypeName
from quorate.snapshots.checkpoints.moments import MOMENT_FORM, parse_moment

Retriable = Literal["yes", "no", "after-reading"]
#: Offsets and positions: never negative, within an int64.
OffsetField = Annotated[int, Field(ge=0, le=2**63 - 1)]
EpochField = Annotated[int, Field(ge=0, le=2**31 - 1)]


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Put what is said of the fields into their schemas."""
    docs = attribute_docs(model)
    for name in model.model_fields.keys() & docs.keys():
        schema["properties"][name]["description"] = docs[name]


class HttpModel(BaseModel):
    """Base of all models here: what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_describe, defer_build=True)


class Nothing(HttpModel):
    """No parameters, or no body."""


class ErrorReply(HttpModel):
    """The answer to every request that failed."""

    error: str
    """Kafka's name of the error."""
    code: int
    """Kafka's number of the error."""
    message: str
    """A sentence for people: the value found, and the rule."""
    retriable: Retriable
    """Whether the same request may be sent again: `yes`: nothing was changed and it may succeed; `no`: it would be
    refused again; `after-reading`: it may have been carried out, read the state first."""
    leader_id: int | None
    """With NOT_CONTROLLER: who may be the active controller."""
    request_id: str
    """The request's `X-Request-Id`, or one made for it; it stands in the server's log."""
    incident_id: str | None
    """With UNKNOWN_SERVER_ERROR: where to look in the server's log."""
    details: dict[str, Any]
    """Facts for programs."""


class ViewParameters(HttpModel):
    """The node whose view of the cluster is wanted."""

    local: bool = False
    """The answering node's own view, even if another controller is active."""


class MomentParameters(HttpModel):
    """The moment whose state is wanted."""

    at: str | None = Field(default=None, max_length=40, pattern=MOMENT_FORM)
    """The state at an offset (`2000`), after the last batch that is not later than a time (`2026-01-31T12:00:00Z`), or
    at the end of an epoch (`epoch:7`), from the log and the checkpoints of the asked controller. Without it the newest.
    """

    @field_validator("at")
    @classmethod
    def _is_moment(cls, text: str | None) -> str | None:
        if text is not None:
            parse_moment(text)
        return text


class PastViewParameters(ViewParameters, MomentParameters):
    """The node whose view is wanted, and the moment of the state."""


class ReadParameters(MomentParameters):
    """The freshness that a read must have."""

    consistency: Literal["committed", "linearizable"] = "committed"
    """`committed`: this node's committed state, which may lag. `linearizable`: everything acknowledged before this
    request is in the answer; needs the active controller and a majority. With `at` there is nothing to be fresh."""

    @model_validator(mode="after")
    def _has_one_wish(self) -> Self:
        if self.at is not None and self.consistency == "linearizable":
            raise ValueError("`at` and `consistency=linearizable` exclude each other")
        return self


class TopicParameters(HttpModel):
    """One topic."""

    name: str = Field(min_length=1, max_length=1024)
    """Topic name."""


class TopicReadParameters(ReadParameters, TopicParameters):
    """One topic, and how fresh it must be."""


class ConfigParameters(ReadParameters):
    """The resource whose configs are wanted, and the freshness that they must have."""

    resource_type: ResourceTypeName
    """Kind of resource."""
    resource_name: str = Field(default="", max_length=1024)
    """Its name; empty: the default of all brokers."""


class BrokerParameters(HttpModel):
    """One broker."""

    broker_id: int = Field(ge=0, le=2**31 - 1)
    """Broker id."""


class BrokerViewParameters(PastViewParameters, BrokerParameters):
    """One broker, and who is to say what it is."""


class FeedParameters(HttpModel):
    """The position of a follower, and the bounds of an answer to it."""

    offset: OffsetField
    """First record wanted: the (exclusive) end of what the follower has."""
    epoch: EpochField | None = None
    """Epoch of the last batch the follower has. Without it nothing is compared, and the batch that holds `offset` is
    the first one sent; with it `offset` must be where a batch ends."""
    wait_ms: int = Field(default=0, ge=0, le=600_000)
    """How long to wait for something new; a server may wait less."""
    max_bytes: int = Field(default=1024 * 1024, ge=1, le=64 * 1024 * 1024)
    """Most bytes of one answer (or of one piece of a stream); at least one batch is sent. A server may send less."""
    stream: bool = False
    """Keep the answer open and go on sending batches as they are committed."""
    past: bool = False
    """Send also what lies before the log's start, where this controller's files still reach back to offset 0. For
    readers of history: a follower is sooner at the end with a checkpoint. Not with `stream`."""
    broker_id: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Who reads: the broker, of several in one process the one with the smallest id. Its reading is shown as a session
    of its own. Readers that do not say are counted together."""
    hosted_brokers: int = Field(default=1, ge=1, le=100_000)
    """How many brokers the reading process plays."""


class CheckpointParameters(HttpModel):
    """A piece of a checkpoint; without `end_offset` and `epoch` the newest one's."""

    end_offset: OffsetField | None = None
    """(Exclusive) end of what the checkpoint covers."""
    epoch: EpochField | None = None
    """Epoch of the batch that ends there."""
    position: OffsetField = 0
    """First byte wanted."""
    max_bytes: int = Field(default=1024 * 1024, ge=1, le=64 * 1024 * 1024)
    """Most bytes of the answer. A server may send less."""


class OffsetDigestParameters(HttpModel):
    """Of the state at which offset the digest is wanted."""

    offset: OffsetField | None = None
    """State at this offset, at which a batch ends; without it the newest."""
    wait_ms: int = Field(default=0, ge=0, le=60_000)
    """How long to wait until the node has applied the log that far."""


class DigestParameters(OffsetDigestParameters):
    """Of which state of a controller the digest is wanted."""

    doubt: bool = False
    """Whoever asks has a state that is not the others'. A controller that is asked compares its own at once."""


class HealthCheck(HttpModel):
    """One thing that was looked at."""

    name: str
    ok: bool
    message: str


class HealthReply(HttpModel):
    """Whether this node is alive, or ready."""

    ok: bool
    node_id: int
    checks: list[HealthCheck]
