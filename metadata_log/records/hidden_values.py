"""Records for people to look at: what authenticates somebody, and what may, is not shown.

One rule for every output that shows records or configs. Files, the feed and digests hold the values as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quorate.metadata_log.records.json_form import record_data
from quorate.metadata_log.records.records import ConfigRecord, Record, UserScramCredentialRecord

#: What stands for a value that is not shown.
HIDDEN: Final = "(hidden)"
#: Whether the value of a config (resource type, name) may be a secret.
IsSecret = Callable[[int, str], bool]

#: In Kafka's JSON form. A token's record holds no secret: its HMAC is made of the controllers' key.
_CREDENTIAL_FIELDS: Final = ("salt", "storedKey", "serverKey")


@dataclass(frozen=True, slots=True)
class ShownNames:
    """``IsSecret`` that goes where the code that knows the configs does not: all that is not named may be a secret."""

    #: By resource type: configs that are none.
    names: Mapping[int, frozenset[str]]

    def __call__(self, resource_type: int, name: str) -> bool:
        """See ``IsSecret``."""
        return name not in self.names.get(resource_type, frozenset())


#: ``IsSecret`` of whoever knows no config.
ALL_CONFIGS: Final = ShownNames({})


def no_secrets(resource_type: int, name: str) -> bool:
    """``IsSecret`` of whoever asked to be shown everything."""
    return False


def hides(is_secret: IsSecret) -> bool:
    """Whether anything is hidden by this rule."""
    return is_secret is not no_secrets


def shown_data(record: Record, version: int, is_secret: IsSecret) -> dict[str, Any]:
    """``record_data`` with `(hidden)` in the place of secrets; with ``no_secrets`` nothing is hidden."""
    data = record_data(record, version)
    if isinstance(record, ConfigRecord):
        data["value"] = shown_value(record.resource_type, record.name, record.value, is_secret)
    elif isinstance(record, UserScramCredentialRecord) and hides(is_secret):
        data |= dict.fromkeys(_CREDENTIAL_FIELDS, HIDDEN)
    return data


def shown_value(resource_type: int, name: str, value: str | None, is_secret: IsSecret) -> str | None:
    """A config's value, or `(hidden)`. None, where there is no value, is no secret."""
    return HIDDEN if value is not None and is_secret(resource_type, name) else value


def shown_configs(resource_type: int, configs: Mapping[str, str], is_secret: IsSecret) -> dict[str, str]:
    """The configs of one resource by name, with `(hidden)` in the place of secrets."""
    return {name: HIDDEN if is_secret(resource_type, name) else value for name, value in sorted(configs.items())}
