"""Finds the nodes whose state is wrong, by the digests of all at one offset. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DigestVerdict:
    """The outcome of a comparison."""

    #: Nodes that agree with each other and are more than half of all; empty where no such nodes answered.
    agreeing: frozenset[int] = frozenset()
    #: Nodes whose state is not that of those.
    wrong: frozenset[int] = frozenset()
    #: Whether some differ and nobody can say who is wrong.
    is_undecided: bool = False


def judge_digests(digests: Mapping[int, str], node_count: int) -> DigestVerdict:
    """Compare.

    Args:
        digests: of the nodes that answered, by id.
        node_count: of all whose word counts: those that are silent agree with nobody.
    """
    holders: dict[str, set[int]] = defaultdict(set)
    for node_id, digest in digests.items():
        holders[digest].add(node_id)
    for nodes in holders.values():
        if len(nodes) > node_count // 2:
            return DigestVerdict(frozenset(nodes), frozenset(digests) - nodes)
    return DigestVerdict(is_undecided=len(holders) > 1)
