"""The persistent map as a value: successors, sharing, differences."""

from __future__ import annotations

from random import Random

import pytest

from quorate.snapshots.maps.persistent_map import MapEditor, PersistentMap


def test_map_after_puts_and_removals_equals_dictionary_and_every_earlier_map_is_unchanged() -> None:
    dice = Random(1)
    expected: dict[int, int] = {}
    present: PersistentMap[int, int] = PersistentMap()
    history = []
    for step in range(2000):
        key = dice.randrange(300)
        if dice.random() < 0.3:
            present = present.without(key)
            expected.pop(key, None)
        else:
            present = present.put(key, step)
            expected[key] = step
        if step % 100 == 0:
            history.append((present, dict(expected)))

        assert len(present) == len(expected)
    assert dict(present.items()) == expected
    for earlier, content in history:
        assert dict(earlier.items()) == content


def test_map_lookups_answer_as_a_dictionary_does() -> None:
    entries = {f"key-{number}": number for number in range(5000)}
    present = PersistentMap(entries)

    assert present["key-17"] == 17
    assert present.get("absent") is None
    assert present.get("absent", 3) == 3
    assert present.get_many(["absent", *present]) == [None, *present.values()]
    assert "key-4999" in present
    assert "absent" not in present
    with pytest.raises(KeyError):
        present["absent"]


def test_map_without_absent_key_is_the_same_object() -> None:
    present = PersistentMap({1: 1})

    assert present.without(2) is present


@pytest.mark.parametrize("size", [0, 3, 1000])
def test_map_changed_in_bulk_equals_changes_one_by_one(size: int) -> None:
    base = PersistentMap(dict.fromkeys(range(size), "old"))
    updates = dict.fromkeys(range(size // 2, size + 50), "new")
    removed = list(range(0, size, 3))
    expected = {number: "old" for number in range(size) if number % 3} | updates

    assert dict(base.changed(updates, removed).items()) == expected
    assert dict(base.items()) == dict.fromkeys(range(size), "old")


def test_map_equality_does_not_depend_on_history() -> None:
    grown: PersistentMap[int, int] = PersistentMap()
    for number in range(500):
        grown = grown.put(number, number)
    shrunk = grown
    for number in range(10, 500):
        shrunk = shrunk.without(number)

    assert grown == PersistentMap({number: number for number in range(500)})
    assert shrunk == PersistentMap({number: number for number in range(10)})
    assert shrunk != grown


@pytest.mark.parametrize("size", [5, 5000])
def test_map_changes_since_are_exactly_the_keys_that_differ(size: int) -> None:
    old = PersistentMap(dict.fromkeys(range(size), 0))
    new = old.put(1, 1).put(2, 0).without(3).put(size + 7, 0)

    assert new.changes_since(old) == ({1, size + 7}, {3})
    assert new.changes_since(new) == (set(), set())


def test_editor_sees_its_own_changes_and_leaves_the_map_alone() -> None:
    base = PersistentMap({"a": 1, "b": 2})
    editor = MapEditor(base)
    editor["c"] = 3
    editor.remove("a")
    editor.remove("absent")
    editor["b"] = 4
    editor.remove("c")
    editor["a"] = 5

    assert (editor.get("a"), editor.get("b"), editor.get("c")) == (5, 4, None)
    assert editor.get_many(["c", "b", "a"]) == [None, 4, 5]
    assert "c" not in editor
    assert dict(editor.items()) == {"a": 5, "b": 4}
    assert dict(editor.finish().items()) == {"a": 5, "b": 4}
    assert dict(base.items()) == {"a": 1, "b": 2}


def test_editor_without_changes_gives_back_the_same_map() -> None:
    base = PersistentMap({"a": 1})

    assert MapEditor(base).finish() is base
