"""Changes that wait in a file, and the facts that they go by: `POST /v1/answers/facts`. See docs/plans.md."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from quorate.controller.api.models import HttpModel
from quorate.controller.api.request_ids import REQUEST_ID_PATTERN
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
)
from quorate.controller.protocol.acls import CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.controller.protocol.labels import AlterLabelsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.controller.protocol.types import ITEMS_MAX, Message, SecretMessage

#: Things that one change may go by: each of its items, and the brokers that they name.
FACTS_MAX: Final = 10 * ITEMS_MAX
#: Changes of one plan: waves of moves, or the steps of an undo.
PLAN_STEPS_MAX: Final = 10_000
PLAN_FORMAT: Final = "quorate-plan"

#: None: there is no such value, or no such thing.
FactValue = str | int | list[int] | None


class PlannedChange(SecretMessage):
    """Requests that change something, at most one of each kind, under the names that `quorate history` has for them."""

    create_topics: CreateTopicsRequest | None = None
    create_partitions: CreatePartitionsRequest | None = None
    delete_topics: DeleteTopicsRequest | None = None
    alter_partition_reassignments: AlterPartitionReassignmentsRequest | None = None
    elect_leaders: ElectLeadersRequest | None = None
    incremental_alter_configs: IncrementalAlterConfigsRequest | None = None
    alter_configs: AlterConfigsRequest | None = None
    unregister_broker: UnregisterBrokerRequest | None = None
    alter_labels: AlterLabelsRequest | None = None
    update_features: UpdateFeaturesRequest | None = None
    create_acls: CreateAclsRequest | None = None
    delete_acls: DeleteAclsRequest | None = None
    alter_client_quotas: AlterClientQuotasRequest | None = None
    alter_user_scram_credentials: AlterUserScramCredentialsRequest | None = None

    @property
    def requests(self) -> dict[str, Message]:
        """Those that are there, by their names."""
        found = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: request for name, request in found if request is not None}


class Fact(HttpModel):
    """Something that a change goes by."""

    about: str
    """As `topic orders`, `partition orders-3`, `configs of topic/orders`."""
    values: dict[str, FactValue]
    """What it is; a value that may be a secret is there as a digest."""


class FactsReply(HttpModel):
    """The facts that changes go by, in the order of their items."""

    cluster_id: str
    state_offset: int
    """Offset of the state that they were read from."""
    state_time_ms: int
    """When the last record of that state was written, in milliseconds since 1970."""
    facts: list[Fact]


class PlanStep(SecretMessage):
    """One change, and what it goes by."""

    change: PlannedChange
    facts: Annotated[list[Fact], Field(max_length=FACTS_MAX)]
    #: The next step begins when the moves that this one starts are done.
    waits: bool = False

    @model_validator(mode="after")
    def _has_one_request(self) -> Self:
        if len(self.change.requests) != 1:
            raise ValueError("a step is one request")
        return self

    @property
    def operation(self) -> str:
        """The name of its request."""
        return next(iter(self.change.requests))


class ChangePlan(SecretMessage):
    """Changes that nobody has made yet: what `--plan` writes and `quorate apply` reads."""

    format: Literal["quorate-plan"]
    version: Literal[1]
    cluster_id: Annotated[str, Field(max_length=100)]
    #: The newest offset of which all facts are true.
    state_offset: Annotated[int, Field(ge=0, le=2**63 - 1)]
    #: When it was made, in milliseconds since 1970.
    made_ms: Annotated[int, Field(ge=0, le=2**53)]
    #: The command that made it, without its arguments.
    made_by: Annotated[str, Field(max_length=100)]
    #: The request that this takes back; None: it takes none back.
    undoes: Annotated[str, Field(pattern=f"^{REQUEST_ID_PATTERN}$")] | None = None
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=PLAN_STEPS_MAX)]


def digest_of_facts(facts: Iterable[Fact]) -> str:
    """The value of `X-Quorate-Expected-Facts`: SHA-256 of facts in one form, as 64 hexadecimal digits."""
    form = json.dumps([[fact.about, fact.values] for fact in facts], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(form.encode()).hexdigest()
