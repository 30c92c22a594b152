"""AlterPartition as columns: one msgpack body for many thousands of partitions, without an object for each.

A column is the bytes of n little-endian integers; a list of brokers for each partition is n rows of ``width`` of them,
padded with -1. Meanings and rules of the fields are those of ``AlterPartitionRequest`` and its response.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.protocol.altered_partitions import AlteredPartitions, AlterPartitionColumns
from quorate.controller.protocol.types import BrokerIdField, Int64, Message
from quorate.metadata_log.ids import UUID_BYTES
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX

#: A body of 8 MiB holds about that many partitions with three replicas.
PARTITIONS_MAX: Final = 150_000

_Count = Annotated[int, Field(ge=0, le=PARTITIONS_MAX)]
_Width = Annotated[int, Field(ge=1, le=PARTITION_SLOTS_MAX)]


class AlterPartitionColumnsRequest(Message):
    """A leader asks for other ISRs."""

    broker_id: BrokerIdField
    broker_epoch: Int64
    count: _Count
    #: Members of the largest new ISR.
    width: _Width
    #: 16 bytes a partition.
    topic_ids: bytes
    #: int32 each.
    partition_ids: bytes
    leader_epochs: bytes
    partition_epochs: bytes
    #: int8: 0 = recovered, 1 = recovering.
    leader_recovery_states: bytes
    #: int32, ``width`` a partition.
    new_isr: bytes
    #: int64, ``width`` a partition: epochs of the members, -1 = not said.
    new_isr_epochs: bytes


class AlterPartitionColumnsResponse(Message):
    """The partitions in the order of the request; what follows the error code counts only where that is 0."""

    count: _Count
    width: _Width
    #: int16.
    error_codes: bytes
    #: int32 each.
    leaders: bytes
    leader_epochs: bytes
    partition_epochs: bytes
    #: int8.
    leader_recovery_states: bytes
    #: int32, ``width`` a partition.
    isr: bytes


def request_of(broker_id: int, broker_epoch: int, columns: AlterPartitionColumns) -> AlterPartitionColumnsRequest:
    """The columns as a request."""
    count, width = columns.new_isr.shape
    return AlterPartitionColumnsRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        count=count,
        width=width,
        topic_ids=columns.topic_ids.tobytes(),
        partition_ids=_bytes(columns.partition_ids, "<i4"),
        leader_epochs=_bytes(columns.leader_epochs, "<i4"),
        partition_epochs=_bytes(columns.partition_epochs, "<i4"),
        leader_recovery_states=_bytes(columns.leader_recovery_states, "<i1"),
        new_isr=_bytes(columns.new_isr, "<i4"),
        new_isr_epochs=_bytes(columns.new_isr_epochs, "<i8"),
    )


def columns_of(request: AlterPartitionColumnsRequest) -> AlterPartitionColumns:
    """The request's columns.

    Raises:
        HttpRefusal: 400, a column has not as many bytes as ``count`` and ``width`` say, or a recovery state is none.
    """
    count, width = request.count, request.width
    columns = AlterPartitionColumns(
        topic_ids=_column(request, "topic_ids", "<u1", (count, UUID_BYTES)),
        partition_ids=_column(request, "partition_ids", "<i4", (count,)),
        leader_epochs=_column(request, "leader_epochs", "<i4", (count,)),
        partition_epochs=_column(request, "partition_epochs", "<i4", (count,)),
        leader_recovery_states=_column(request, "leader_recovery_states", "<i1", (count,)),
        new_isr=_column(request, "new_isr", "<i4", (count, width)),
        new_isr_epochs=_column(request, "new_isr_epochs", "<i8", (count, width)),
    )
    if (columns.partition_ids < 0).any():
        raise HttpRefusal(400, "body partition_ids: a partition id is negative")
    return columns


def response_of(altered: AlteredPartitions) -> AlterPartitionColumnsResponse:
    """The outcome as a response."""
    count, width = altered.isr.shape
    return AlterPartitionColumnsResponse(
        count=count,
        width=max(width, 1),
        error_codes=_bytes(altered.error_codes, "<i2"),
        leaders=_bytes(altered.leaders, "<i4"),
        leader_epochs=_bytes(altered.leader_epochs, "<i4"),
        partition_epochs=_bytes(altered.partition_epochs, "<i4"),
        leader_recovery_states=_bytes(altered.leader_recovery_states, "<i1"),
        isr=_bytes(altered.isr if width else np.full((count, 1), -1), "<i4"),
    )


def outcome_of(response: AlterPartitionColumnsResponse) -> AlteredPartitions:
    """The response's columns.

    Raises:
        HttpRefusal: a column has not as many bytes as ``count`` and ``width`` say.
    """
    count = response.count
    return AlteredPartitions(
        error_codes=_column(response, "error_codes", "<i2", (count,)),
        leaders=_column(response, "leaders", "<i4", (count,)),
        leader_epochs=_column(response, "leader_epochs", "<i4", (count,)),
        isr=_column(response, "isr", "<i4", (count, response.width)),
        leader_recovery_states=_column(response, "leader_recovery_states", "<i1", (count,)),
        partition_epochs=_column(response, "partition_epochs", "<i4", (count,)),
    )


def _bytes(column: NDArray[Any], kind: str) -> bytes:
    return np.ascontiguousarray(column, kind).tobytes()


def _column(message: Message, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    data: bytes = getattr(message, name)
    wanted = np.dtype(kind).itemsize * int(np.prod(shape))
    if len(data) != wanted:
        raise HttpRefusal(400, f"body {name}: has {len(data)} bytes, {wanted} are due for shape {shape}")
    return np.frombuffer(data, kind).reshape(shape)
