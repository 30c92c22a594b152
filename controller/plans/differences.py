"""Differences between the facts that a change was planned on and those that are now, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from quorate.controller.api.answers.plan_models import Fact, FactValue
from quorate.controller.plans.setting_facts import is_hidden


def differences(then: Sequence[Fact], now: Sequence[Fact]) -> list[str]:
    """A sentence for each value that is not what it was, as ``topic orders has 6 partitions, not 3``, and for each
    thing that nothing was known of.
    """
    known, found = _by_name(then), _by_name(now)
    sentences: list[str] = []
    for name in dict.fromkeys((*known, *found)):
        about, _ = name
        if (about, 0) in known:
            sentences += _of_one(about, known.get(name, {}), found.get(name, {}))
        else:  # as of the broker of a replica that is new; or the plan's file was changed
            sentences.append(f"the plan has no fact about {about}, which its change goes by")
    return sentences


def _by_name(facts: Sequence[Fact]) -> dict[tuple[str, int], dict[str, FactValue]]:
    """The values of each; of several that are about what is called alike, by their place among these."""
    counts: Counter[str] = Counter()
    named = {}
    for fact in facts:
        named[fact.about, counts[fact.about]] = fact.values
        counts[fact.about] += 1
    return named


def _of_one(about: str, old: dict[str, FactValue], new: dict[str, FactValue]) -> Iterator[str]:
    if about.startswith("topic "):
        yield from _of_topic(about, old, new)
    elif about.startswith("ACLs "):
        yield from (f"ACL {text} is {'gone' if text in old else 'new'}" for text in sorted(old.keys() ^ new.keys()))
    elif about.startswith("ACL "):
        yield from (f"{about} is {'there' if new.get(key) == 'yes' else 'gone'}" for key in _changed(old, new))
    else:
        for key in _changed(old, new):
            if is_hidden(old.get(key)) and is_hidden(new.get(key)):
                yield f"{about}: {key} is another secret now"
                continue
            is_either = old.get(key) is not None and new.get(key) is not None
            now, then = _told_apart(new.get(key), old.get(key))
            yield f"{about}: {key} is {now}, {'not' if is_either else 'and was'} {then}"


def _of_topic(about: str, old: dict[str, FactValue], new: dict[str, FactValue]) -> Iterator[str]:
    named = f"topic {old['name']}" if old.get("name") else about
    was_there, is_there = (any(values.get(key) for key in ("id", "name")) for values in (old, new))
    if was_there and not is_there:
        yield f"{named} is gone"
    elif is_there and not was_there:
        yield f"there is a {named} now"
    elif old.get("id") != new.get("id"):
        yield f"{named} is another one of that name: its id is {new.get('id')}, not {old.get('id')}"
    elif old.get("partitions") != new.get("partitions"):
        now, then = _told_apart(new.get("partitions"), old.get("partitions"))
        yield f"{named} has {now} partitions, not {then}"


def _changed(old: dict[str, FactValue], new: dict[str, FactValue]) -> list[str]:
    return [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]


def _told_apart(new: FactValue, old: FactValue) -> tuple[str, str]:
    """Two values that are not the same, as people read them; with quotes where a text reads like the other value."""
    now, then = shown(new), shown(old)
    return (now, then) if now != then else (_quoted(new), _quoted(old))


def _quoted(value: FactValue) -> str:
    return repr(value) if isinstance(value, str) and not is_hidden(value) else shown(value)


def shown(value: FactValue) -> str:
    """A value as people read it."""
    if value is None:
        return "not set"
    if is_hidden(value):
        return "(hidden)"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return str(value)
