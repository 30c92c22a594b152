"""Batches that a message brought, back to back: checked once, and taken apart as columns.

One walk reads every header, checks every CRC and that each batch follows the one before; whoever appends the run
looks at none of it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from crc32c import crc32c

from quorate.metadata_log.batches.batch import CONTROL_ATTRIBUTE, CRC_START, header_fields
from quorate.metadata_log.errors import MalformedData


@dataclass(frozen=True, slots=True)
class BatchRun:
    """At least one batch. The lists are parallel; the batches are dense from ``base_offset`` on."""

    base_offset: int
    #: All batches, as they lie in the log.
    data: bytes
    batches: list[bytes]
    #: Exclusive end offsets.
    ends: list[int]
    #: Never falling.
    epochs: list[int]
    has_control: bool

    def __len__(self) -> int:
        return len(self.batches)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return len(self.data)

    def tail(self, count: int) -> BatchRun:
        """The run without its first ``count`` batches, which are fewer than all."""
        if count == 0:
            return self
        return BatchRun(
            self.ends[count - 1],
            b"".join(self.batches[count:]),
            self.batches[count:],
            self.ends[count:],
            self.epochs[count:],
            self.has_control,
        )


def split_run(data: bytes, base_offset: int, epoch_min: int, epoch_max: int) -> BatchRun:
    """The batches in ``data``, which are to follow an entry of ``epoch_min`` that ends at ``base_offset``.

    Raises:
        MalformedData: a batch is damaged or cut short, does not follow the one before, or its epoch falls or is above
            ``epoch_max``; or there is none.
    """
    batches: list[bytes] = []
    ends: list[int] = []
    epochs: list[int] = []
    view, total = memoryview(data), len(data)
    position, end, last_epoch, attributes_seen = 0, base_offset, epoch_min, 0
    while position < total or not batches:
        base, size, epoch, crc, attributes, _, count = header_fields(data, position)
        stop = position + size
        if stop > total:
            raise MalformedData(f"batch of {size} bytes at {end}, {total - position} there")
        if crc32c(view[position + CRC_START : stop]) != crc:
            raise MalformedData(f"the CRC of the batch at {end} does not match")
        if base != end or not last_epoch <= epoch <= epoch_max:
            raise MalformedData(
                f"a batch at {base} of epoch {epoch} where one at {end} of epoch {last_epoch} to {epoch_max} is due"
            )
        end, last_epoch = base + count, epoch
        attributes_seen |= attributes
        batches.append(data[position:stop])
        ends.append(end)
        epochs.append(epoch)
        position = stop
    return BatchRun(base_offset, data, batches, ends, epochs, bool(attributes_seen & CONTROL_ATTRIBUTE))
