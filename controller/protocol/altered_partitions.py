"""AlterPartition for many partitions at once: request and response as columns, without an object for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AlterPartitionColumns:
    """n partitions that a leader wants changed."""

    #: uint8[n, 16]
    topic_ids: NDArray[np.uint8]
    #: int32[n] each: the partition, and the state that the request starts from.
    partition_ids: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    partition_epochs: NDArray[np.int32]
    #: int8[n]: 0 = recovered, 1 = recovering.
    leader_recovery_states: NDArray[np.int8]
    #: int32[n, k]: broker ids in order, padded with -1 behind the last.
    new_isr: NDArray[np.int32]
    #: int64[n, k]: broker epochs of the members, -1 = not said.
    new_isr_epochs: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AlteredPartitions:
    """The state of n partitions after the request; what follows the error code counts only where that is 0."""

    #: int16[n], numbers of ErrorCode.
    error_codes: NDArray[np.int16]
    leaders: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    #: int32[n, w], padded with -1.
    isr: NDArray[np.int32]
    leader_recovery_states: NDArray[np.int8]
    partition_epochs: NDArray[np.int32]
