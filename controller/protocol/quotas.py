"""Client quotas: changes and description (Kafka's APIs 49 and 48)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quorate.controller.protocol.types import ITEMS_MAX, ItemResult, Message, Name

#: Types in one entity or filter. There are three types, each at most once; what is wrong beyond that is told apart.
_PARTS_MAX = 10
#: Changes of one entity; there are five quotas.
_OPS_MAX = 100

QuotaMatch = Literal["EXACT", "DEFAULT", "ANY"]


class QuotaEntityPart(Message):
    """One type of an entity."""

    #: user, client-id or ip.
    entity_type: Name
    #: None = the default of the type: it counts where nothing is set for the one in question.
    entity_name: Name | None


#: A user, a client id, the two together, or an address.
QuotaEntityParts = Annotated[list[QuotaEntityPart], Field(max_length=_PARTS_MAX)]


class AlterQuotaOp(Message):
    """One quota of an entity."""

    key: Name
    #: Not looked at where the quota is removed.
    value: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    remove: bool = False


class AlterClientQuotasEntry(Message):
    """Changes of one entity: all of them, or none."""

    entity: QuotaEntityParts
    ops: Annotated[list[AlterQuotaOp], Field(max_length=_OPS_MAX)]


class AlterClientQuotasRequest(Message):
    """Changes, entity by entity; each may fail for itself."""

    entries: Annotated[list[AlterClientQuotasEntry], Field(max_length=ITEMS_MAX)]
    #: Answer as if, and write nothing.
    validate_only: bool = False


class AlterClientQuotasResult(ItemResult):
    """Whether an entity's quotas were changed."""

    entity: list[QuotaEntityPart]


class AlterClientQuotasResponse(Message):
    """In the order of the request."""

    entries: list[AlterClientQuotasResult]


class QuotaFilterComponent(Message):
    """A condition on an entity's name of one type."""

    entity_type: Name
    #: EXACT: the name in ``match``; DEFAULT: the default of the type; ANY: either.
    match_type: QuotaMatch
    match: Name | None


class DescribeClientQuotasRequest(Message):
    """The entities wanted: those that meet every component; without any component all of them."""

    components: Annotated[list[QuotaFilterComponent], Field(max_length=_PARTS_MAX)]
    #: Only entities of exactly the types that the components name.
    strict: bool = False


class QuotaValue(Message):
    """One quota."""

    key: str
    value: float


class DescribedClientQuotas(Message):
    """The quotas of one entity."""

    entity: list[QuotaEntityPart]
    values: list[QuotaValue]


class DescribeClientQuotasResponse(Message):
    """By entity."""

    entries: list[DescribedClientQuotas]
