"""The control batch with which a leader opens its epoch, and the voter set as the log has it."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.metadata_log.batches.batch import control_batch, iter_records, parse_header
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Record,
    Voter,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)
from quorate.quorum.config import QuorumConfig

#: Where the attributes lie in a batch, and their bit for control batches: most batches are told apart by this alone.
_ATTRIBUTES_AT = 22
_CONTROL_BIT = 0x20


def voters_in(batch: bytes) -> list[VotersRecord]:
    """The voter sets in a batch: in a control batch, if anywhere.

    Raises:
        MalformedData: a control batch holds no such records as it says.
    """
    if not batch[_ATTRIBUTES_AT] & _CONTROL_BIT:
        return []
    return [logged.record for logged in iter_records(batch) if isinstance(logged.record, VotersRecord)]


class VoterHistory:
    """Voter sets found in the log, by where. A set in a batch that was truncated away counts no more."""

    def __init__(self, log: MetadataLog) -> None:
        """To be made before the log that was opened is changed: appended batches are shown to ``note``."""
        self._log = log
        #: (end offset of the batch, its epoch, voter set), ascending.
        self._found: list[tuple[int, int, VotersRecord]] = []
        for base_offset in log.control_batches_at_open:
            self.note(log.read(log.position_containing(base_offset)))

    def note(self, batch: bytes) -> None:
        """Look at a batch that was appended."""
        for voters in voters_in(batch):
            header = parse_header(batch)
            self._found.append((header.end_offset, header.epoch, voters))

    def note_checkpoint(self, end_offset: int, epoch: int, voters: VotersRecord | None) -> None:
        """A checkpoint takes the place of everything before its end."""
        self._found = [found for found in self._found if found[0] > end_offset]
        if voters is not None:
            self._found.insert(0, (end_offset, epoch, voters))

    def current(self) -> VotersRecord | None:
        """The newest voter set that the log still holds or begins with; None when it never had one."""
        log = self._log
        while self._found:
            end_offset, epoch, voters = self._found[-1]
            if end_offset <= log.start_offset or log.holds(end_offset, epoch):
                return voters
            self._found.pop()
        return None


def known_voters(config: QuorumConfig, heard: Mapping[int, Uuid]) -> VotersRecord:
    """The voter set of the settings, as the log keeps it: a directory that was made anew by its own id.

    Args:
        heard: directories that peers showed in their handshakes. Of others the settings' are all that is known.
    """
    directories = {**heard, config.node_id: config.directory_id}
    feature = KRaftVersionFeature(0, 1)
    return VotersRecord(
        tuple(
            VotersVoter(
                voter.node_id,
                directories.get(voter.node_id, voter.directory_id),
                (VoterEndpoint(config.listener_name, voter.host, voter.port),),
                feature,
            )
            for voter in sorted(config.voters, key=lambda voter: voter.node_id)
        )
    )


def first_batch(
    config: QuorumConfig, granters: set[int], heard: Mapping[int, Uuid], in_log: VotersRecord | None, timestamp: int
) -> bytes:
    """The batch that opens an epoch, not yet placed.

    LeaderChange; at kraft.version 1 also KRaftVersion for the first leader, and the voter set whenever it differs.
    """
    is_dynamic = config.kraft_version >= 1
    change = LeaderChangeMessage(
        config.node_id,
        tuple(Voter(node_id) for node_id in sorted(voter.node_id for voter in config.voters)),
        tuple(Voter(node_id) for node_id in sorted(granters)),
    )
    # Version 0, also where directory ids are known: Kafka 4.3.1 writes no other, and its readers take every version
    # for that one. The directory ids stand in the voter set.
    records: list[tuple[Record, int]] = [(change, 0)]
    if is_dynamic:
        voters = known_voters(config, heard)
        if in_log is None:
            records.append((KRaftVersionRecord(config.kraft_version), 0))
        if in_log != voters:
            records.append((voters, 0))
    return control_batch(records, timestamp)
