"""Log directory ids as small numbers: a dictionary that a partition table shares among all its pages.

A cluster has a few directories a broker, and every replica names one of them: 4 bytes instead of 16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, UUID_BYTES, Uuid

#: Codes of the ids that mean something by themselves; they are in every dictionary.
MIGRATING_CODE: Final = 0
UNASSIGNED_CODE: Final = 1
LOST_CODE: Final = 2

#: Ids that are looked up one by one to learn what a column is made of.
_SAMPLE: Final = 4096
#: Ids that are looked up at a time, so that they stay in a processor's cache.
_BLOCK: Final = 8192


class DirectoryDictionary:
    """Directory ids by code and codes by id. Immutable: ``including`` gives a successor in which old codes hold."""

    __slots__ = ("_codes", "_table", "_uuids", "_words", "ids")

    #: uint8[d, 16]: the id of every code.
    ids: NDArray[np.uint8]

    def __init__(self, ids: Iterable[Uuid] = ()) -> None:
        known = dict.fromkeys((DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST, *ids))
        self._uuids = tuple(known)
        self._codes: dict[Uuid, int] = {uuid: code for code, uuid in enumerate(known)}
        self.ids = np.frombuffer(b"".join(known), np.uint8).reshape(-1, UUID_BYTES)
        self._words = self.ids.view(np.uint64)
        self._table = np.full(1 << 16, MIGRATING_CODE, np.intp)
        self._table[_places(self._words)] = np.arange(len(known))

    def __len__(self) -> int:
        return len(self._codes)

    def code(self, uuid: Uuid) -> int | None:
        """The code of an id; None if no replica was ever in that directory."""
        return self._codes.get(uuid)

    def known_code(self, uuid: Uuid) -> int:
        """The code of an id that is in the dictionary."""
        return self._codes[uuid]

    def uuid(self, code: int) -> Uuid:
        """The id behind a code."""
        return self._uuids[code]

    def including(self, uuids: Iterable[Uuid]) -> DirectoryDictionary:
        """A dictionary that knows these ids too; itself if it does already."""
        new = [uuid for uuid in dict.fromkeys(uuids) if uuid not in self._codes]
        return DirectoryDictionary((*self._codes, *new)) if new else self

    def encode(self, directories: NDArray[np.uint8]) -> tuple[DirectoryDictionary, NDArray[np.int32]]:
        """Codes int32[n] of ids uint8[n, 16], and the dictionary (a successor if there were new ids)."""
        words = np.ascontiguousarray(directories).view(np.uint64)
        dictionary, codes, unknown = self, *self._probe(words)
        while unknown.size:
            sample = unknown[:_SAMPLE]
            uuids = [directories[at].tobytes() for at in sample.tolist()]
            dictionary = dictionary.including(uuids)
            codes[sample] = [dictionary._codes[uuid] for uuid in uuids]
            rest = unknown[_SAMPLE:]
            codes[rest], still = dictionary._probe(words[rest])
            unknown = rest[still]
        return dictionary, codes

    def _probe(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Codes by one look into a hash table without collision handling, and which ones it does not hold."""
        codes = np.empty(len(words), np.int32)
        wrong = [np.empty(0, np.intp)]
        places = _places(words)
        for start in range(0, len(words), _BLOCK):
            part = slice(start, start + _BLOCK)
            codes[part] = found = self._table.take(places[part])
            known = self._words.take(found, axis=0)
            if not np.array_equal(known, words[part]):
                wrong.append(np.flatnonzero((known != words[part]).any(axis=1)) + start)
        return codes, np.concatenate(wrong)

    def is_continued_by(self, other: DirectoryDictionary) -> bool:
        """Whether all codes here hold in ``other``, as in a successor; a table that is read anew may have others."""
        return other is self or (len(self) <= len(other) and bool((other._words[: len(self)] == self._words).all()))

    def codes_in(self, other: DirectoryDictionary) -> NDArray[np.int32]:
        """int32[codes]: for every code here, the code of the same id in ``other``; -2 where it has none."""
        if other is self:
            return np.arange(len(self), dtype=np.int32)
        return np.array([other._codes.get(uuid, -2) for uuid in self._codes], np.int32)


def _places(words: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Places in the table: the last two bytes, random in real ids, and what tells the reserved ones apart."""
    return words.view(np.uint16)[:, -1]
