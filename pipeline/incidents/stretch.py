"""Checks that a log and the tables of a history are of the same stretch: a report is made of both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.inputs import InputCluster
from quorate.pipeline.files.storage import read
from quorate.pipeline.tables.result_directory import MANIFEST
from quorate.snapshots.incidents.failovers import Epoch


class OtherStretch(PipelineError):
    """The tables are of offsets that the log does not hold, or do not tell of which they are."""


@dataclass(frozen=True, slots=True)
class Told:
    """The offsets that tables are of, by cluster; the second is exclusive."""

    directory: str
    of: dict[str, tuple[int, int]]

    @classmethod
    def by(cls, directory: str) -> Told:
        """The account in the manifest of the history job.

        Raises:
            OtherStretch: there is none.
        """
        try:
            clusters = json.loads(read(f"{directory}/{MANIFEST}"))["clusters"]
            of = {str(one["cluster_id"]): (int(one["first_offset"]), int(one["end_offset"])) for one in clusters}
        except (StorageError, OSError, ValueError, KeyError, TypeError) as error:
            raise OtherStretch(
                f"{directory}: its {MANIFEST} does not tell of which offsets the tables are; make the tables again"
            ) from error
        return cls(directory, of)

    def require_known(self, cluster: InputCluster) -> None:
        """See to it that the tables know of a cluster.

        Raises:
            OtherStretch: they do not.
        """
        if cluster.cluster_id not in self.of:
            raise OtherStretch(f"{self.directory}: its {MANIFEST} has no cluster {cluster.cluster_id}")

    def ends(self, clusters: Iterable[InputCluster]) -> dict[str, int]:
        """Up to where the log of each of these clusters counts, all of which the tables know."""
        return {one.cluster_id: self.of[one.cluster_id][1] for one in clusters}

    def require(self, cluster: InputCluster, epochs: Iterable[Epoch]) -> None:
        """See to it that the log holds all that the tables are of; a log may go on, and begin earlier.

        Raises:
            OtherStretch: it does not.
        """
        first, end = self.of[cluster.cluster_id]
        begins = cluster.first_offset or 0
        ends = max((one.last_offset + 1 for one in epochs if one.cluster_id == cluster.cluster_id), default=begins)
        if begins > first or ends < end:
            where = cluster.directory or cluster.cluster_id
            holds = f"begins at {begins}" if begins > first else f"ends at {ends - 1}"
            raise OtherStretch(
                f"{self.directory}: the tables are of the offsets {first} to {end - 1}, and the log {where} {holds}; "
                "give the paths that the tables were made of"
            )
