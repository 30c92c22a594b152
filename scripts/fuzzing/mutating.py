"""Changes of bytes, drawn from a generator: an input depends on its seed and number alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

#: Numbers at which lengths, counts and offsets go wrong.
EDGES: Final = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
#: What a field of a document is set to.
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, -(2**63)),
    *("", "x", "\x00", "ä" * 300, "-"),
    *([], [[]], {}, {"x": 1}),
)
_CHANGES_MAX: Final = 4
_INSERTED_MAX: Final = 40


def mutated(corpus: Sequence[bytes], rng: Random) -> bytes:
    """One of the corpus, a few changes away."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.randint(1, _CHANGES_MAX)):
        rng.choice(_CHANGES)(data, corpus, rng)
    return bytes(data)


def mutated_document(document: Any, rng: Random) -> Any:
    """A document of dicts and lists with one of its values, keys or elements changed."""
    if isinstance(document, dict) and document and rng.random() < 0.9:
        key = rng.choice(sorted(document))
        rest = {name: value for name, value in document.items() if name != key}
        kind = rng.random()
        if kind < 0.1:
            return rest
        if kind < 0.2:
            return rest | {key + "x": document[key]}
        return rest | {key: mutated_document(document[key], rng)}
    if isinstance(document, list) and document and rng.random() < 0.8:
        at = rng.randrange(len(document))
        if rng.random() < 0.2:
            return document * rng.choice((2, 100))
        return [*document[:at], mutated_document(document[at], rng), *document[at + 1 :]]
    return rng.choice(_VALUES)


def _range(data: bytearray, rng: Random) -> tuple[int, int]:
    begin = rng.randint(0, len(data))
    return begin, min(len(data), begin + rng.choice((1, 2, 4, 8, 30, 200)))


def _flip(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    size = rng.choice((1, 2, 4, 8))
    begin = rng.randint(0, len(data))
    number = rng.choice(EDGES) & ((1 << (8 * size)) - 1)
    data[begin : begin + size] = number.to_bytes(size, rng.choice(("big", "little")))


def _insert(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    begin = rng.randint(0, len(data))
    data[begin:begin] = rng.randbytes(rng.randint(1, _INSERTED_MAX))


def _delete(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    begin, end = _range(data, rng)
    del data[begin:end]


def _double(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    begin, end = _range(data, rng)
    data[begin:begin] = data[begin:end] * rng.choice((1, 1, 2, 50))


def _truncate(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    del data[rng.randint(0, len(data)) :]


def _splice(data: bytearray, corpus: Sequence[bytes], rng: Random) -> None:
    other = rng.choice(corpus)
    begin = rng.randint(0, len(other))
    data[rng.randint(0, len(data)) :] = other[begin:]


_CHANGES: Final[tuple[Callable[[bytearray, Sequence[bytes], Random], None], ...]] = (
    _flip,
    _flip,
    _overwrite,
    _overwrite,
    _insert,
    _delete,
    _double,
    _truncate,
    _splice,
)
