"""The two kinds of directories that a controller without a log begins with: one that votes, and one that does not.

A *founding* directory votes from its first start on, for a cluster of which no controller has run: nobody can have
forgotten anything. A directory *to join* is for a controller whose own was lost. What that one had promised is
forgotten, so it has no vote until it has caught up with the others (``quorum.elections.membership``), and it is another
directory with an id of its own.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.controller.operations.bootstrap import bootstrap_checkpoint
from quorate.metadata_log.directory.directory import FormatPlan, format_directory, voters_checkpoint
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, MetaProperties, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QuorumState
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text
from quorate.metadata_log.records.records import KRaftVersionFeature, VoterEndpoint, VotersRecord, VotersVoter

LISTENER_NAME: Final = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class FoundingVoter:
    """One of the controllers that a cluster begins with."""

    id: int
    #: Kafka's text form; None with static voters (kraft.version 0).
    directory_id: str | None
    #: Where the other controllers reach it.
    host: str
    port: int

    @property
    def directory_uuid(self) -> Uuid:
        return ZERO_UUID if self.directory_id is None else uuid_from_text(self.directory_id)


def new_id() -> str:
    """Of a cluster or a directory."""
    return uuid_text(uuid.uuid4().bytes)


def founding_plan(cluster_id: str, node_id: int, voters: Sequence[FoundingVoter], kraft_version: int) -> FormatPlan:
    """The directory of one of the voters that a cluster begins with, empty but for what Kafka 4.3.1 starts with."""
    now_ms = time.time_ns() // 1_000_000
    own = next(voter for voter in voters if voter.id == node_id)
    is_static = kraft_version == 0
    directory_id = new_id() if own.directory_id is None else own.directory_id
    return FormatPlan(
        meta=MetaProperties(cluster_id, node_id, uuid_from_text(directory_id)),
        bootstrap=bootstrap_checkpoint(now_ms),
        voters=None if is_static else voters_checkpoint(_voters_record(voters), now_ms),
        quorum_state=QuorumState(
            leader_epoch=0,
            data_version=0 if is_static else 1,
            current_voters=tuple(voter.id for voter in voters) if is_static else (),
        ),
    )


def _voters_record(voters: Sequence[FoundingVoter]) -> VotersRecord:
    feature = KRaftVersionFeature(0, 1)
    return VotersRecord(
        tuple(
            VotersVoter(one.id, one.directory_uuid, (VoterEndpoint(LISTENER_NAME, one.host, one.port),), feature)
            for one in voters
        )
    )


def format_to_join(directory: Path, cluster_id: str, node_id: int, replaces: Uuid, generation: int) -> str:
    """Make a directory for a controller that lost its own; its id.

    Args:
        replaces: the directory that the settings of the controllers name for it; zero with static voters.

    Raises:
        DirectoryError: there is something in it. OSError: the disk failed.
    """
    made = new_id()
    meta = MetaProperties(cluster_id, node_id, uuid_from_text(made), generation=generation, replaces=replaces)
    format_directory(RealDisk(), str(directory), FormatPlan(meta, bootstrap=None, voters=None, quorum_state=None))
    return made


def wipe(directory: Path) -> None:
    """Take everything away from a stopped controller, and let it join again."""
    path = directory / META_PROPERTIES_NAME
    meta = decode_meta_properties(path.read_bytes(), str(path))
    shutil.rmtree(directory)
    replaces = meta.directory_id if meta.replaces == ZERO_UUID else meta.replaces
    format_to_join(directory, meta.cluster_id, meta.node_id, replaces, meta.generation)
