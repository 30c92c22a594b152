"""Differences between two states, entry by entry: the form that people and programs are shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from quorate.metadata_log.records.hidden_values import HIDDEN

Change = Literal["added", "removed", "changed"]
#: An entry's values as JSON, by field.
Fields = Mapping[str, Any]

_DIGITS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is compared and never shown."""

    value: object

    def __repr__(self) -> str:
        return HIDDEN


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field's values as JSON; None on a side where the entry or the field is not."""

    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is not the same on both sides."""

    change: Change
    #: As the commands name it.
    name: str
    #: Those that differ; of an entry that was added or removed all.
    fields: Mapping[str, FieldChange]


@dataclass(frozen=True, slots=True)
class PartDifference:
    """The differences in one part of a state: its topics, say."""

    part: str
    added: int
    removed: int
    changed: int
    #: Of the changed entries, how many differ in a field; only fields in which some do.
    fields: Mapping[str, int]
    #: By name; the same every time they are gone through.
    entries: Iterable[Entry]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def part_difference(part: str, old: Mapping[str, Fields], new: Mapping[str, Fields]) -> PartDifference:
    """Compare entries by name; those that are the same may be left out."""
    names = sorted({*old, *new}, key=natural_order)
    entries = [entry for name in names if (entry := entry_of(name, old.get(name), new.get(name))) is not None]
    counts = Counter(entry.change for entry in entries)
    fields = Counter(field for entry in entries if entry.change == "changed" for field in entry.fields)
    return PartDifference(part, counts["added"], counts["removed"], counts["changed"], fields, entries)


def entry_of(name: str, old: Fields | None, new: Fields | None) -> Entry | None:
    """One entry's difference; None where there is none."""
    if old is None or new is None:
        fields = {
            field: FieldChange(None if old is None else _shown(old[field]), None if new is None else _shown(new[field]))
            for field in old or new or ()
        }
        return Entry("added" if old is None else "removed", name, fields)
    fields = {
        field: FieldChange(_shown(old.get(field)), _shown(new.get(field)))
        for field in {**old, **new}
        if old.get(field) != new.get(field)
    }
    return Entry("changed", name, fields) if fields else None


def _shown(value: Any) -> Any:
    return HIDDEN if isinstance(value, Secret) else value


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key by which names with numbers in them stand as people expect: broker 9 before broker 10."""
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(_DIGITS.split(name))]
