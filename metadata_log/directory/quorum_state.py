"""The durable term and vote, in Kafka's ``quorum-state`` file (``QuorumStateData.json``, ``FileQuorumStateStore``).

**The file is the right to vote.** A directory without a readable one belongs to a *non-voter*: its node may have voted
and forgotten it. A founding voter gets the file when its directory is formatted; a node that joins later, or whose log
was set aside, has none, and writes its first one only when it has durably reached the commit point that a leader
reported after it joined, with that leader's epoch: from then on it votes in the epochs above.

Kafka's file has no checksum, and a flipped digit in it is another vote. So ours ends with one field more, ``crc``: the
CRC-32C of the same file without it. Kafka's converter (``QuorumStateDataJsonConverter``) asks for the fields it knows
and leaves others alone; a file without ``crc``, as Kafka writes it, is believed as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from crc32c import crc32c

from quorate.metadata_log.disk import Disk, OpenMode, read_file, replace_file
from quorate.metadata_log.errors import CorruptState, InvalidId
from quorate.metadata_log.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text
from quorate.metadata_log.limits import EPOCH_MAX

QUORUM_STATE_NAME: Final = "quorum-state"
#: ``leader_id`` and ``voted_id`` when there is none.
NOBODY: Final = -1
_CRC_FIELD: Final = re.compile(rb',"crc":(\d{1,10})\}\Z')
#: What Kafka writes, by data version.
_KAFKA_FIELDS: Final = {
    0: {"clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters", "data_version"},
    1: {"leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"},
}


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The memory of a voter. One vote at most in an epoch; an epoch with a known leader has no vote left."""

    #: The term.
    leader_epoch: int
    #: Leader of that epoch as far as known, or NOBODY.
    leader_id: int = NOBODY
    #: Whom this node voted for in that epoch, or NOBODY.
    voted_id: int = NOBODY
    #: Directory of the candidate voted for; zero when unknown or NOBODY. Only kept at data version 1.
    voted_directory_id: Uuid = ZERO_UUID
    #: 0 with a static voter list (kraft.version 0), 1 with voters in the log.
    data_version: int = 1
    #: The static voter list; always empty at data version 1.
    current_voters: tuple[int, ...] = field(default=())


class QuorumStateStore:
    """The file in one log directory. ``load`` is for start-up, ``write_job`` for the ordered disk queue."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self.path = f"{directory}/{QUORUM_STATE_NAME}"

    def load(self) -> QuorumState | None:
        """The state, durable from now on; None when there is no file: a non-voter. Blocking.

        Raises:
            CorruptState: the file is there and says nothing usable. Treat the node as a non-voter, and say so.
            OSError: the disk failed.
        """
        # What was renamed but not synced before a kill could still be undone by a power cut, after it was acted upon.
        self._disk.sync_directory(self._directory)
        if not self._disk.exists(self.path):
            return None
        file = self._disk.open_file(self.path, OpenMode.WRITE)
        try:
            file.sync()
        finally:
            file.close()
        return decode_quorum_state(read_file(self._disk, self.path), self.path)

    def write_job(self, state: QuorumState) -> QuorumStateJob:
        """A job that makes ``state`` durable. No vote may leave before it is done."""
        return QuorumStateJob(self._disk, self._directory, state)


@dataclass(frozen=True, slots=True)
class QuorumStateJob:
    """See ``QuorumStateStore.write_job``."""

    disk: Disk
    directory: str
    state: QuorumState

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``. A crash leaves the old file or the new one."""
        return replace_file(self.disk, self.directory, QUORUM_STATE_NAME, encode_quorum_state(self.state))


def encode_quorum_state(state: QuorumState) -> bytes:
    """Kafka's JSON, with the checksum."""
    data = kafka_quorum_state(state)
    return b'%s,"crc":%d}' % (data[:-1], crc32c(data))


def kafka_quorum_state(state: QuorumState) -> bytes:
    """Kafka's JSON, byte for byte, as its ``FileQuorumStateStore`` writes it."""
    document: dict[str, Any] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch}
    if state.data_version == 0:
        voters = [{"voterId": voter} for voter in state.current_voters]
        document = {"clusterId": "", **document, "votedId": state.voted_id, "appliedOffset": 0, "currentVoters": voters}
    else:
        document |= {"votedId": state.voted_id, "votedDirectoryId": uuid_text(state.voted_directory_id)}
    document["data_version"] = state.data_version
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def decode_quorum_state(data: bytes, path: str) -> QuorumState:
    """The state in a file of ours or Kafka's.

    Raises:
        CorruptState: it is no such JSON, its checksum is wrong, a field is missing, unknown, of the wrong type or out
            of range, or its version is unknown.
    """
    data = _checked(data, path)
    try:
        document = json.loads(data)
    except ValueError as error:
        raise CorruptState(path, f"no JSON: {error}") from error
    if not isinstance(document, dict):
        raise CorruptState(path, "no JSON object")
    version = _integer(document, "data_version", path)
    if version not in (0, 1):
        raise CorruptState(path, f"data_version {version}; 0 and 1 are known")
    unknown = document.keys() - _KAFKA_FIELDS[version]
    if unknown:
        # A flipped bit in the name of the checksum must not make it a file that has none.
        raise CorruptState(path, f"unknown fields: {', '.join(map(repr, sorted(unknown)))}")
    state = QuorumState(
        leader_epoch=_integer(document, "leaderEpoch", path),
        leader_id=_integer(document, "leaderId", path),
        voted_id=_integer(document, "votedId", path),
        voted_directory_id=_directory_id(document, path) if version == 1 else ZERO_UUID,
        data_version=version,
        current_voters=_voters(document, path) if version == 0 else (),
    )
    if state.leader_epoch > EPOCH_MAX:
        raise CorruptState(path, f"epoch {state.leader_epoch} cannot stand in a log, {EPOCH_MAX} is the highest")
    if state.leader_epoch < 0 or state.leader_id < NOBODY or state.voted_id < NOBODY:
        raise CorruptState(path, f"epoch {state.leader_epoch}, leader {state.leader_id} or vote {state.voted_id}")
    return state


def _checked(data: bytes, path: str) -> bytes:
    """The file as Kafka would have written it."""
    found = _CRC_FIELD.search(data)
    if found is None:
        return data
    written = data[: found.start()] + b"}"
    if crc32c(written) != int(found[1]):
        raise CorruptState(path, f"the CRC does not match: {crc32c(written)}, the file says {int(found[1])}")
    return written


def _integer(document: dict[str, Any], name: str, path: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise CorruptState(path, f"{name} is {value!r}, not an integer")
    return value


def _directory_id(document: dict[str, Any], path: str) -> Uuid:
    text = document.get("votedDirectoryId")
    if not isinstance(text, str):
        raise CorruptState(path, f"votedDirectoryId is {text!r}, not a uuid")
    try:
        return uuid_from_text(text)
    except InvalidId as error:
        raise CorruptState(path, str(error)) from error


def _voters(document: dict[str, Any], path: str) -> tuple[int, ...]:
    voters = document.get("currentVoters")
    # Kafka writes null for an unknown voter list.
    if voters is None:
        return ()
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise CorruptState(path, f"currentVoters is {voters!r}, not a list of voters")
    return tuple(_integer(voter, "voterId", path) for voter in voters)
