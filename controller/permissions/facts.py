"""The facts that a change goes by: who may be told them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.configs.resources import RESOURCE_TYPES, is_sensitive
from quorate.controller.permissions.configs import refused_description
from quorate.controller.permissions.rights import Rights
from quorate.controller.protocol.configs import DescribeConfigsResource, ResourceName
from quorate.metadata_log.errors import ApiError

#: In the words of docs/security.md.
FACTS_RULE: Final = (
    "DESCRIBE on Cluster; for configs DESCRIBE_CONFIGS on each Topic or Group; on Cluster for others, for labels "
    "and for quotas; to be a super user for credentials, configs that may be secrets, and replacements of all configs"
)

#: Of a config's name in an error.
_NAME_CHARS_MAX: Final = 80


def need_facts(rights: Rights, change: PlannedChange) -> None:
    """Refuse a caller that may not be told all that a change goes by.

    Raises:
        ApiError: CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED.
    """
    needs_configs = change.alter_labels is not None or change.alter_client_quotas is not None
    rights.need_on_cluster("DESCRIBE", *(("DESCRIBE_CONFIGS",) if needs_configs else ()))
    secret = next(_secrets(change), None)
    if secret is not None and not rights.is_super:
        raise rights.refusal(
            f"needs to be a super user for the facts about {secret}: their digests serve to guess them by; "
            "make the change without a plan, or let a super user plan and make it"
        )
    for request in (change.incremental_alter_configs, change.alter_configs):
        for resource in () if request is None else request.resources:
            _need_configs(rights, resource)


def _secrets(change: PlannedChange) -> Iterator[str]:
    """Name what may be secret of that which the facts of a change are digests of.

    A digest has no salt, and whoever begins a login is told a user's: guesses would be compared without asking anybody.
    """
    if change.alter_user_scram_credentials is not None:
        yield "credentials"
    if change.alter_configs is not None:
        yield "replaced configs, which are all that are set, secrets too"
    changed = change.incremental_alter_configs
    for resource in () if changed is None else changed.resources:
        kind = RESOURCE_TYPES[resource.resource_type]
        secret = (one.name for one in resource.configs if is_sensitive(kind, one.name))
        yield from (f"configs that may be secrets, as {name[:_NAME_CHARS_MAX]!r}" for name in secret)


def _need_configs(rights: Rights, resource: ResourceName) -> None:
    wanted = DescribeConfigsResource(resource_type=resource.resource_type, resource_name=resource.resource_name)
    refused = refused_description(rights, wanted)
    if refused is not None:
        raise ApiError(refused.error_code, refused.error_message or refused.error_code.name)
