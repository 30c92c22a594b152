"""Configs that may be secrets, in a comparison: that they differ is told, and never what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from quorate.metadata_log.records.hidden_values import IsSecret, shown_value

#: In the place of two secrets that differ.
SHOWN_SECRETS: Final = ("one", "another")
_VALUE: Final = "value"


@dataclass(frozen=True, slots=True)
class Secrets:
    """The configs that may be secrets. Travels to the workers."""

    is_secret: IsSecret
    #: Whether both sides hold them. What is told of them is only that they differ.
    are_compared: bool

    def hidden(self, configs: pa.Table) -> pa.Table:
        """The rows, with `(hidden)` in the place of secrets that are not compared."""
        if self.are_compared or _VALUE not in configs.column_names:
            return configs
        rows = configs.select(["resource_type", "name", _VALUE]).to_pylist()
        values = [shown_value(row["resource_type"], row["name"], row[_VALUE], self.is_secret) for row in rows]
        place, column = configs.column_names.index(_VALUE), configs.schema.field(_VALUE)
        return configs.set_column(place, column, pa.array(values, column.type))

    def told(self, row: dict[str, Any]) -> dict[str, Any]:
        """A line about a config, without what a secret is."""
        key = row["key"]
        if row["field"] == _VALUE and self.is_secret(key["resource_type"], key["name"]):
            return row | dict(zip(("old", "new"), SHOWN_SECRETS, strict=True))
        return row
