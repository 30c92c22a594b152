"""The changes of a request in words: one line where the differences themselves would be thousands. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

from quorate.scripts.cli.logs.image_diff import fields_text
from quorate.scripts.terminal.output import counted
from quorate.snapshots.difference.difference_entries import Entry

#: Names in a row; the rest is counted.
_NAMES_MAX: Final = 3
#: Characters of one entry's values.
_VALUES_MAX: Final = 120
#: An entry of these parts, as people call it.
_NOUNS: Final = {
    "features": "feature",
    "voters": "voter",
    "controllers": "controller",
    "configs": "config",
    "labels": "labels of",
    "client_quotas": "quota",
    "producer_ids": "producer ids",
    "acls": "ACL",
    "scram": "SCRAM credential",
    "delegation_tokens": "delegation token",
}
#: Parts whose entries' names say all that matters.
_NAMED_WHOLE: Final = ("acls", "scram", "delegation_tokens", "voters", "controllers")
#: The parts of a state that something can change in.
PARTS: Final = ("topics", "partitions", "brokers", *_NOUNS)
#: Fields of a broker that stand for an event, with the event's words by their new value.
_BROKER_EVENTS: Final = {
    "in_controlled_shutdown": {True: "shuts down", False: "no longer shuts down"},
    "fenced": {True: "fenced", False: "unfenced"},
}


def effect(changes: Iterable[tuple[str, Entry]]) -> str:
    """The changes of one request: brokers before topics, then partitions, then all else."""
    by_part: dict[str, list[Entry]] = {part: [] for part in ("brokers", "topics", "partitions", *_NOUNS)}
    for part, entry in changes:
        by_part.setdefault(part, []).append(entry)
    topics = by_part.pop("topics")
    partitions = by_part.pop("partitions")
    told = [*_brokers(by_part.pop("brokers")), *_topics(topics, partitions), *_partitions(partitions)]
    for part, entries in by_part.items():
        told += _named(entries, partial(_other, part))
    return "; ".join(told)


def _named(entries: Sequence[Entry], words: Callable[[Entry], str]) -> Iterator[str]:
    yield from map(words, entries[:_NAMES_MAX])
    if len(entries) > _NAMES_MAX:
        yield f"and {len(entries) - _NAMES_MAX:,} more"


def _names(names: Sequence[str]) -> str:
    more = f", ... ({len(names):,})" if len(names) > _NAMES_MAX else ""
    return ", ".join(names[:_NAMES_MAX]) + more


def _other(part: str, entry: Entry) -> str:
    values = "" if part in _NAMED_WHOLE else fields_text(entry)
    if len(values) > _VALUES_MAX:
        values = f"{values[:_VALUES_MAX]}..."
    change = "" if values and entry.change == "changed" else f" {entry.change}"
    return f"{_NOUNS.get(part, part)} {entry.name}{change}{values}"


# --- brokers ------------------------------------------------------------------------------------------


def _brokers(entries: Sequence[Entry]) -> list[str]:
    """One sentence for all brokers to which the same happened."""
    by_event: dict[str, list[str]] = {}
    for entry in entries:
        by_event.setdefault(_broker_event(entry), []).append(entry.name)
    return [f"broker{'' if len(ids) == 1 else 's'} {_names(ids)} {event}" for event, ids in by_event.items()]


def _broker_event(entry: Entry) -> str:
    if entry.change == "added":
        return "registered"
    if entry.change == "removed":
        return "unregistered"
    fields = dict(entry.fields)
    if "incarnation_id" in fields:
        return "registered again"
    events = [words[bool(fields[name].new)] for name, words in _BROKER_EVENTS.items() if name in fields]
    if "log_dirs" in fields:
        lost = set(fields["log_dirs"].old or ()) - set(fields["log_dirs"].new or ())
        events.append(f"lost {counted(len(lost), 'log directory')}" if lost else "has other log directories")
    return " and ".join(events) or f"changed in {', '.join(fields)}"


# --- topics and partitions ----------------------------------------------------------------------------


def _topics(topics: Sequence[Entry], partitions: Sequence[Entry]) -> Iterator[str]:
    for change, verb in (("added", "created"), ("removed", "deleted")):
        names = [entry.name for entry in topics if entry.change == change]
        if len(names) == 1:
            yield f"topic {names[0]} {verb}{_size(names[0], change, partitions)}"
        elif names:
            count = sum(entry.change == change for entry in partitions)
            with_partitions = f" with {counted(count, 'partition')}" if count else ""
            yield f"topics {_names(names)} {verb}{with_partitions}"
    is_new = {entry.name for entry in topics if entry.change != "changed"}
    grown = Counter(_topic_of(entry) for entry in partitions if entry.change == "added")
    for topic, count in grown.items():
        if topic not in is_new:
            yield f"topic {topic} has {counted(count, 'partition')} more"


def _topic_of(entry: Entry) -> str:
    return entry.name.rpartition("-")[0]


def _size(topic: str, change: str, partitions: Sequence[Entry]) -> str:
    mine = [entry for entry in partitions if entry.change == change and _topic_of(entry) == topic]
    if not mine:
        return ""
    counts = {len(entry.fields["replicas"].new or entry.fields["replicas"].old) for entry in mine}
    replicas = "-".join(map(str, sorted({min(counts), max(counts)})))
    return f": {counted(len(mine), 'partition')} x {replicas}"


#: Of a changed partition what stands for it, the first that holds; a partition counts for one of each line. A rule
#: holds for none that differs in none of its fields.
_Rule = tuple[str, frozenset[str], Callable[[dict[str, Any], dict[str, Any]], bool]]


def _rule(words: str, fields: str, holds: Callable[[dict[str, Any], dict[str, Any]], bool]) -> _Rule:
    return words, frozenset(fields.split()), holds


_MOVES: Final = "adding_replicas removing_replicas"
_LEADERSHIP: Final[tuple[_Rule, ...]] = (
    _rule("{} offline", "leader", lambda old, new: new.get("leader") == -1),
    _rule(
        # Whoever left the ISR last: its election takes the set of these away (KIP-966).
        "{} led by the last known leader again, uncleanly",
        "leader_recovery_state",
        lambda old, new: new.get("leader_recovery_state") == 1 and new.get("leader") in old.get("last_known_elr", ()),
    ),
    _rule("{} elected uncleanly", "leader_recovery_state", lambda old, new: new.get("leader_recovery_state") == 1),
    _rule("{} led again", "leader", lambda old, new: old.get("leader") == -1 and "leader" in new),
    _rule("{} changed leader", "leader", lambda old, new: "leader" in new),
    _rule("{} elected the same leader again", "leader_epoch", lambda old, new: "replicas" not in new),
)
_MEMBERSHIP: Final[tuple[_Rule, ...]] = (
    _rule("reassignment of {} begun", _MOVES, lambda old, new: _moves(new) and not _moves(old)),
    _rule("reassignment of {} cancelled", _MOVES, lambda old, new: not _moves(new) and _is_cancelled(old, new)),
    _rule("reassignment of {} ended", _MOVES, lambda old, new: _moves(old) and not _moves(new)),
    _rule(
        "reassignment of {} changed",
        f"{_MOVES} replicas",
        lambda old, new: _moves(old) or _moves(new) or "replicas" in new,
    ),
    _rule("{} lost in-sync replicas", "isr", lambda old, new: bool(set(old["isr"]) - set(new["isr"]))),
    _rule("{} gained in-sync replicas", "isr", lambda old, new: bool(set(new["isr"]) - set(old["isr"]))),
    _rule("{} changed their eligible leaders", "elr last_known_elr", lambda old, new: True),
    _rule("directories of {} assigned", "directories", lambda old, new: True),
    _rule("{} recovered", "leader_recovery_state", lambda old, new: new.get("leader_recovery_state") == 0),
)


def _is_cancelled(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether somebody who was being added has gone, or who was being removed has stayed."""
    adding, removing = (set(old.get(name) or ()) for name in _MOVES.split())
    if "replicas" not in new:  # they are the same, and hold both
        return bool(removing)
    after = set(new["replicas"])
    return not adding <= after or not removing.isdisjoint(after)


def _moves(fields: dict[str, Any]) -> bool:
    return bool(fields.get("adding_replicas") or fields.get("removing_replicas"))


@cache
def _may_hold(fields: tuple[str, ...]) -> tuple[tuple[_Rule, ...], ...]:
    """The rules of either kind that may hold for what differs in these fields: of thousands most do in the same."""
    return tuple(
        tuple(rule for rule in rules if not rule[1].isdisjoint(fields)) for rules in (_LEADERSHIP, _MEMBERSHIP)
    )


def _partitions(entries: Sequence[Entry]) -> Iterator[str]:
    changed = [entry for entry in entries if entry.change == "changed"]
    seen: Counter[str] = Counter()
    for entry in changed:
        old = {name: field.old for name, field in entry.fields.items()}
        new = {name: field.new for name, field in entry.fields.items()}
        for rules in _may_hold(tuple(entry.fields)):
            words = next((words for words, _, holds in rules if holds(old, new)), None)
            if words is not None:
                seen[words] += 1
    for words in (words for rules in (_LEADERSHIP, _MEMBERSHIP) for words, _, _ in rules):
        if seen[words]:
            name = changed[0].name if len(changed) == 1 else counted(seen[words], "partition")
            yield words.format(name) + (_values(changed[0], words) if len(changed) == 1 else "")


def _values(entry: Entry, words: str) -> str:
    """Of a single partition the leader, or the in-sync replicas, that it has from now on."""
    if "led again" in words:
        return f" (by {entry.fields['leader'].new})"
    if "changed leader" in words:
        return f" ({entry.fields['leader'].old} -> {entry.fields['leader'].new})"
    if "in-sync" in words:
        return f" (now {','.join(map(str, entry.fields['isr'].new)) or 'none'})"
    return ""
