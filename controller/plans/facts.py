"""The facts that a change goes by: all that it reads of a state, as far as it is about what the change names.

Brokers come and go, leaders move, ISRs shrink: what a change is not about may change under a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from quorate.controller.api.answers.plan_models import FACTS_MAX, Fact, PlannedChange
from quorate.controller.plans import partition_facts, setting_facts
from quorate.controller.protocol.types import Message
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.snapshots.image.image import MetadataImage

_READ: Final[Mapping[str, Callable[[MetadataImage, Any], Iterator[Fact]]]] = {
    "create_topics": partition_facts.of_creation,
    "create_partitions": partition_facts.of_growth,
    "delete_topics": partition_facts.of_deletion,
    "alter_partition_reassignments": partition_facts.of_moves,
    "elect_leaders": partition_facts.of_elections,
    "unregister_broker": partition_facts.of_unregistration,
    "incremental_alter_configs": setting_facts.of_config_changes,
    "alter_configs": setting_facts.of_config_replacement,
    "alter_labels": setting_facts.of_labels,
    "update_features": setting_facts.of_features,
    "create_acls": setting_facts.of_new_acls,
    "delete_acls": setting_facts.of_removed_acls,
    "alter_client_quotas": setting_facts.of_quotas,
    "alter_user_scram_credentials": setting_facts.of_credentials,
}


def facts_of(image: MetadataImage, change: PlannedChange, check: Callable[[], None] = lambda: None) -> list[Fact]:
    """The facts that a change goes by, in the order of what it names; each is there once.

    ``check`` is called between two of them: a filter of ACLs makes one, and may go through all ACLs for it. It raises
    where the reading is to end.

    Raises:
        ApiError: INVALID_REQUEST, an election that names no partition.
        LimitExceeded: POLICY_VIOLATION, there are too many, where a thing counts each time that it is named.
    """
    found: list[Fact] = []
    #: Two things may be called alike: names of users have spaces in them.
    known: dict[str, list[Fact]] = {}
    read = (fact for name, request in change.requests.items() for fact in _READ[name](image, request))
    for count, fact in enumerate(read):
        check()
        if count == FACTS_MAX:
            message = (
                f"The change goes by more than {FACTS_MAX} facts, the most there may be; one named twice counts twice."
            )
            raise LimitExceeded(message, ErrorCode.POLICY_VIOLATION)
        alike = known.setdefault(fact.about, [])
        if fact not in alike:
            alike.append(fact)
            found.append(fact)
    return found


#: By the class of a request, the name that a change has for it.
_NAMES: Final[Mapping[type[Message], str]] = {
    kind: name
    for name, field in PlannedChange.model_fields.items()
    for kind in getattr(field.annotation, "__args__", ())
    if kind is not type(None)
}


def change_of(request: object) -> PlannedChange | None:
    """The change that a request is; None: it is none that can be planned."""
    name = next((name for kind, name in _NAMES.items() if isinstance(request, kind)), None)
    return None if name is None else PlannedChange.model_validate({name: request})
