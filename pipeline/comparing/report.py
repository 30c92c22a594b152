"""The result of a comparison, for people and as a document. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

_SIGNS: Final = {"only_a": "-", "only_b": "+", "changed": "~"}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two states, as it was asked for and as it was found."""

    path: str
    cluster_id: str
    #: Of which moment it is, in words.
    moment: str


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences in one kind.

    Attributes:
        counts: rows by `only_a`, `only_b`, `changed`. by_field: changed rows by field; one row may count in several.
        first: the first ones by key, each with its `change`; a changed row once for each field, with `old` and `new`.
    """

    kind: str
    rows_a: int
    rows_b: int
    compared: tuple[str, ...]
    counts: dict[str, int]
    by_field: dict[str, int]
    first: list[dict[str, Any]]

    @property
    def is_equal(self) -> bool:
        """No row differs."""
        return not self.total

    @property
    def total(self) -> int:
        """Rows that differ."""
        return sum(self.counts.values())


def document(
    a: Side, b: Side, matched_by: str, found: Sequence[Differences], not_compared: Sequence[str]
) -> dict[str, Any]:
    """The comparison with every field."""
    return {
        "a": asdict(a),
        "b": asdict(b),
        "matched_by": matched_by,
        "not_compared": list(not_compared),
        "equal": all(kind.is_equal for kind in found),
        "kinds": {kind.kind: {name: value for name, value in asdict(kind).items() if name != "kind"} for kind in found},
    }


def report(a: Side, b: Side, matched_by: str, found: Sequence[Differences], not_compared: Sequence[str]) -> list[str]:
    """The comparison in lines: a summary of each kind, then the first differences, `-` only in A, `+` only in B."""
    lines = [
        f"A: cluster {a.cluster_id}, {a.moment}: {a.path}",
        f"B: cluster {b.cluster_id}, {b.moment}: {b.path}",
    ]
    if a.cluster_id != b.cluster_id and matched_by == "name":
        lines.append("Matched by topic name: ids and epochs, which each cluster makes up for itself, are not compared.")
    for kind in found:
        lines += _kind_lines(kind)
    if not_compared:
        lines.append(f"{not_compared_text(not_compared)}.")
    lines.append("Equal." if all(kind.is_equal for kind in found) else "Different.")
    return lines


def not_compared_text(kinds: Sequence[str]) -> str:
    """The kinds that were not compared, and why."""
    return f"Not compared, for tables of history do not hold them: {', '.join(kinds).replace('_', ' ')}"


def _kind_lines(kind: Differences) -> list[str]:
    if kind.is_equal:
        return [f"{kind.kind}: {kind.rows_a} rows, equal"]
    counts = kind.counts
    head = (
        f"{kind.kind}: {counts['only_a']} of A's {kind.rows_a} only there, {counts['only_b']} of B's {kind.rows_b}"
        f" only there, {counts['changed']} changed"
    )
    if kind.by_field:
        head += " (" + ", ".join(f"{field} {count}" for field, count in kind.by_field.items()) + ")"
    return [head, *map(_line, kind.first)]


def _line(one: dict[str, Any]) -> str:
    name = "-".join(str(part) for part in one["key"].values())
    if one["change"] != "changed":
        return f"  {_SIGNS[one['change']]} {name}"
    return f"  ~ {name} {one['field']}: {_shown(one['old'])} -> {_shown(one['new'])}"


def _shown(value: str | None) -> str:
    return "none" if value is None else value
