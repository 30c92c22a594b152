"""Differences in the rest of two states: records that are no topic's, partition's, broker's or config's. Pure.

There are few of them: they are compared where they were gathered. What a secret is made of is never told, only that it
is another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from quorate.metadata_log.records.hidden_values import HIDDEN
from quorate.pipeline.comparing.report import Differences
from quorate.pipeline.comparing.secrets import SHOWN_SECRETS


@dataclass(frozen=True, slots=True)
class EntryKind:
    """Some types of records, as they are named in the table of entries.

    Attributes:
        key: fields that say which entry is which; none of records of which there is one, which are told by their type.
        own: fields that every cluster makes up for itself. ignored: those that say nothing.
        secret: fields that are compared as one, and never shown.
    """

    name: str
    records: tuple[str, ...]
    key: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()


_ACL: Final = ("principal", "permissionType", "operation", "resourceType", "resourceName", "patternType", "host")

ENTRY_KINDS: Final = (
    EntryKind("quotas", ("CLIENT_QUOTA_RECORD",), ("entity", "key"), ignored=frozenset({"remove"})),
    EntryKind("acls", ("ACCESS_CONTROL_ENTRY_RECORD",), _ACL, ignored=frozenset({"id"})),
    # The keys are made of a salt that a cluster draws: for one password every cluster has others.
    EntryKind(
        "credentials", ("USER_SCRAM_CREDENTIAL_RECORD",), ("name", "mechanism"), own=frozenset({"secret"}),
        secret=frozenset({"salt", "storedKey", "serverKey"}),
    ),
    EntryKind("tokens", ("DELEGATION_TOKEN_RECORD",), ("tokenId",)),
    EntryKind("features", ("FEATURE_LEVEL_RECORD",), ("name",)),
    EntryKind(
        "producer_ids", ("PRODUCER_IDS_RECORD",), own=frozenset({"nextProducerId"}),
        ignored=frozenset({"brokerId", "brokerEpoch"}),
    ),
    EntryKind("controllers", ("REGISTER_CONTROLLER_RECORD",), ("controllerId",), own=frozenset({"incarnationId"})),
    EntryKind("quorum", ("KRaftVersion", "KRaftVoters", "ZK_MIGRATION_STATE_RECORD")),
)  # fmt: skip

#: Types of records that the tables of topics, brokers and configs hold.
OF_TABLES: Final = ("TOPIC_RECORD", "REGISTER_BROKER_RECORD", "CONFIG_RECORD")

_SECRET: Final = "secret"

#: By type and key of an entry its fields.
_Entries = dict[tuple[str, ...], dict[str, str]]


def entry_differences(
    kind: EntryKind,
    a: Iterable[Mapping[str, str]],
    b: Iterable[Mapping[str, str]],
    *,
    own: bool,
    limit: int,
    hidden: bool = False,
) -> Differences:
    """Compare the entries of one kind.

    Args:
        a, b: rows of tables of entries: ``kind``, and ``data`` as JSON. own: whether what a cluster makes up for itself
            is compared. limit: so many differing entries are told one by one. hidden: a side hides secrets, which are
            then not compared.
    """
    left, right = _read(kind, a, hidden=hidden), _read(kind, b, hidden=hidden)
    left_out = frozenset() if own else kind.own
    changed = {
        key: [name for name in before if name not in left_out and before[name] != right[key].get(name)]
        for key, before in left.items()
        if key in right
    }
    changes = {key: "changed" for key, names in changed.items() if names}
    changes |= dict.fromkeys(left.keys() - right.keys(), "only_a") | dict.fromkeys(right.keys() - left.keys(), "only_b")
    by_field: dict[str, int] = {}
    for names in changed.values():
        for name in names:
            by_field[name] = by_field.get(name, 0) + 1
    lines: list[dict[str, Any]] = []
    for key in islice(sorted(changes), limit):
        where = dict(zip(kind.key or ("record",), key, strict=True))
        if changes[key] != "changed":
            lines.append({"key": where, "change": changes[key], "field": None, "old": None, "new": None})
        for name in changed.get(key, ()):
            old, new = SHOWN_SECRETS if name == _SECRET else (left[key][name], right[key].get(name))
            lines.append({"key": where, "change": "changed", "field": name, "old": old, "new": new})
    fields = sorted({name for entries in (left, right) for entry in entries.values() for name in entry} - left_out)
    return Differences(
        kind.name,
        len(left),
        len(right),
        tuple(fields),
        {change: sum(one == change for one in changes.values()) for change in ("only_a", "only_b", "changed")},
        dict(sorted(by_field.items())),
        lines,
    )


def _read(kind: EntryKind, rows: Iterable[Mapping[str, str]], *, hidden: bool) -> _Entries:
    found: _Entries = {}
    for row in rows:
        if row["kind"] in kind.records:
            data = json.loads(row["data"])
            key = tuple(_text(data.pop(name)) for name in kind.key) or (row["kind"],)
            secret = {name: data.pop(name) for name in sorted(kind.secret)}
            fields = {name: _text(value) for name, value in data.items() if name not in kind.ignored}
            found[key] = fields | ({_SECRET: HIDDEN if hidden else _text(secret)} if secret else {})
    return found


def _text(value: Any) -> str:
    """A value for people; of parts of an entity, ``user=ana`` each, by type: their order means nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, dict) and "entityType" in one for one in value):
        named = ((one["entityType"], one["entityName"]) for one in value)
        return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in sorted(named, key=str))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
