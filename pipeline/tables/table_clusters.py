"""Chooses the cluster that is meant among those in some tables."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from quorate.pipeline.errors import PipelineError


class WhichCluster(PipelineError):
    """The tables hold no cluster, or several, or not the one that is asked for."""


def chosen_cluster(directory: str | Path, there: Collection[str], asked: str | None, option: str = "--cluster") -> str:
    """Return the one that is asked for, or the only one.

    Args:
        directory: of the tables. there: the ids in them. option: by which one of several is chosen.

    Raises:
        WhichCluster: there is none of it, or nothing says which of several. Names those that there are.
    """
    ids = ", ".join(sorted(there))
    if not there:
        raise WhichCluster(f"{directory}: the tables hold no cluster")
    if asked is not None and asked not in there:
        raise WhichCluster(f"{directory}: the tables hold no cluster {asked}: they hold {ids}")
    if asked is None and len(there) > 1:
        raise WhichCluster(f"{directory}: the tables hold {len(there)} clusters ({ids}): say which, with {option}")
    return ids if asked is None else asked
