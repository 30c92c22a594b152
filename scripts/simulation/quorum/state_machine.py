"""The state machine behind a simulated node: it chains a digest over committed batches and reports to the world."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from quorate.metadata_log.batches.batch import (
    HEADER_BYTES,
    build_batch,
    control_batch,
    iter_records,
    parse_header,
    place_batch,
)
from quorate.metadata_log.records.records import SnapshotFooterRecord, SnapshotHeaderRecord
from quorate.quorum.host import CommittedBatches, SnapshotReader

if TYPE_CHECKING:
    from quorate.scripts.simulation.quorum.host import SimulatedNode


class StateMachine:
    """A listener whose whole state is one digest, so that equal states are equal values."""

    def __init__(self, owner: SimulatedNode) -> None:
        self._owner = owner
        self.digest = b""
        #: Exclusive end of what was applied.
        self.applied_end = 0
        self.applied_epoch = 0
        #: Of the last batch applied.
        self.applied_time_ms = 0
        #: Epoch of the announced own leadership, None when this node is not announced.
        self.leading_epoch: int | None = None
        #: (last offset, payload crc) of own appends not yet committed.
        self.pending: dict[int, int] = {}

    def on_commit(self, batches: CommittedBatches) -> None:
        world = self._owner.world
        for batch in batches:
            header = parse_header(batch)
            if header.base_offset != self.applied_end:
                world.violation(
                    f"node {self._owner.node_id} was handed offset {header.base_offset}, {self.applied_end} was due"
                )
            self.digest = hashlib.blake2b(self.digest + batch, digest_size=12).hexdigest().encode()
            self.applied_end = header.end_offset
            self.applied_epoch = header.epoch
            self.applied_time_ms = header.timestamp
            world.checks.applied(self._owner, header, self.digest)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        data = reader.read()
        head = parse_header(data)
        state = parse_header(data, head.size)
        self.digest = data[head.size + HEADER_BYTES : head.size + state.size].rstrip(b"\0")
        manifest = reader.manifest()
        if manifest is None or manifest.digest != self.digest:
            self._owner.world.violation(f"the manifest of checkpoint {reader.path} is not that of its content")
        self.applied_end = reader.end_offset
        self.applied_epoch = reader.epoch
        self.applied_time_ms = _covered_time_ms(data)
        self._owner.world.checks.loaded(self._owner, reader.end_offset, reader.epoch, self.digest)

    def checkpoint_content(self) -> list[bytes]:
        """The state as a checkpoint: header, one batch with the digest, footer."""
        batches = (
            control_batch([(SnapshotHeaderRecord(self.applied_time_ms), 0)], 0),
            # Padded, so that it takes several chunks.
            build_batch(self.digest.ljust(400, b"\0"), 1, 0),
            control_batch([(SnapshotFooterRecord(), 0)], 0),
        )
        return [place_batch(batch, offset, self.applied_epoch) for offset, batch in enumerate(batches)]

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        self.leading_epoch = epoch if leader_id == self._owner.node_id else None
        self.pending = {}
        self._owner.world.checks.announced(self._owner, leader_id, epoch)


def _covered_time_ms(checkpoint: bytes) -> int:
    """Time of the last batch that a checkpoint covers."""
    header = next(iter(iter_records(checkpoint))).record
    assert isinstance(header, SnapshotHeaderRecord)
    return header.last_contained_log_timestamp
