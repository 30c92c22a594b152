"""One file of a simulated disk: its content in the page cache, its durable content, and a crash's effect on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

_PAGE: Final = 4096


class CrashPolicy(Enum):
    """The rule by which a power cut leaves some of the pending changes of one file or directory."""

    #: None of them: the least that a disk must keep.
    NOTHING = "nothing"
    #: All of them: the kernel happened to write them back.
    EVERYTHING = "everything"
    #: Some first ones, whole.
    PREFIX = "prefix"
    #: Some first ones, the last of them cut at any byte. (Of a name change there are no halves.)
    TORN = "torn"
    #: Any pages of the file, in any order: what a file system may do that orders nothing.
    PAGES = "pages"
    #: Each file and directory by a policy drawn for it, PAGES aside.
    MIXED = "mixed"


_MIXED_CHOICES: Final = (CrashPolicy.NOTHING, CrashPolicy.EVERYTHING, CrashPolicy.PREFIX, CrashPolicy.TORN)

#: A pending change of a file: bytes at a position, or (position, None) to cut it to that size.
Change = tuple[int, bytes | None]


@dataclass(slots=True, eq=False)
class Inode:
    """A file or directory, whatever its names."""

    is_directory: bool = False
    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)
    #: Lowest position at which ``durable`` may have changed since ``durable_log`` read it; None = nowhere.
    changed_from: int | None = 0

    def persist(self, change: Change) -> None:
        """A change reaches the disk."""
        position = min(change[0], len(self.durable))
        self.changed_from = position if self.changed_from is None else min(self.changed_from, position)
        apply(self.durable, change)

    def settle(self, policy: CrashPolicy, rng: Random) -> None:
        """The machine dies: of the pending changes that remains which ``policy`` says."""
        if policy is CrashPolicy.PAGES:
            self._settle_pages(rng)
        else:
            count = kept(policy, len(self.pending), rng)
            for change in self.pending[:count]:
                self.persist(change)
            if policy is CrashPolicy.TORN and count < len(self.pending):
                position, data = self.pending[count]
                if data is not None:
                    self.persist((position, data[: rng.randint(0, len(data))]))
        self.pending.clear()
        self.cached = bytearray(self.durable)

    def _settle_pages(self, rng: Random) -> None:
        goal = bytearray(self.durable)
        for change in self.pending:
            apply(goal, change)
        self.changed_from = 0
        if rng.random() < 0.5:
            apply(self.durable, (len(goal), None))
        for start in range(0, min(len(goal), len(self.durable)), _PAGE):
            if rng.random() < 0.5:
                end = min(start + _PAGE, len(self.durable))
                self.durable[start:end] = goal[start:end].ljust(end - start, b"\0")


def drawn(policy: CrashPolicy, rng: Random) -> CrashPolicy:
    """The policy for one file or directory: drawn where the given one is mixed."""
    return rng.choice(_MIXED_CHOICES) if policy is CrashPolicy.MIXED else policy


def kept(policy: CrashPolicy, count: int, rng: Random) -> int:
    """The number of the first ``count`` pending changes that a power cut leaves."""
    if policy is CrashPolicy.NOTHING:
        return 0
    return count if policy is CrashPolicy.EVERYTHING else rng.randint(0, count)


def apply(content: bytearray, change: Change) -> None:
    """Make a change of a file's content."""
    position, data = change
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
        return
    if data and position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data
