"""The made-up cluster's brokers: where they stand, whether they are up, and the records of their lives."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from quorate.metadata_log.batches.runs import ByteColumn, IntColumn
from quorate.metadata_log.ids import DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.scripts.generated_history.partition_pool import Flags

_RACKS: Final = ("rack-a", "rack-b", "rack-c")
_DIRECTORIES: Final = 2
#: ``BrokerRegistrationChangeRecord.fenced``.
_FENCE, _UNFENCE = 1, -1
#: Level of metadata.version from which registrations are written at version 4.
_CORDONED_LEVEL: Final = 30


class GeneratedBrokers:
    """Brokers by id, from 1 on. Ids above ``count`` are for those that come later."""

    def __init__(self, random: Generator, count: int, later: int) -> None:
        self._random = random
        self.id_max = count + later
        #: The ids that are registered, ascending.
        self.ids = list(range(1, count + 1))
        self.next_id = count + 1
        #: By id, and False behind the last one: index -1 stands for nobody.
        self.is_up: Flags = np.zeros(self.id_max + 2, np.bool_)
        self._epochs: dict[int, int] = {}
        #: By code, 0 = not assigned: see ``directory_codes``.
        codes = 1 + _DIRECTORIES * (self.id_max + 1)
        self.directory_ids: ByteColumn = np.frombuffer(random.bytes(16 * codes), np.uint8).reshape(codes, 16).copy()
        self.directory_ids[0] = np.frombuffer(DIRECTORY_UNASSIGNED, np.uint8)

    def rack_of(self, broker: int) -> int:
        """The number of a broker's rack."""
        return broker % len(_RACKS)

    @property
    def up(self) -> list[int]:
        """The brokers that are up, ascending."""
        return [broker for broker in self.ids if self.is_up[broker]]

    def directory_codes(self, brokers: IntColumn, number: IntColumn | int) -> IntColumn:
        """The code of a broker's directory."""
        return (1 + brokers * _DIRECTORIES + number).astype(np.int32)

    def lost_code(self, broker: int, number: int) -> int:
        """The code of one directory."""
        return 1 + broker * _DIRECTORIES + number

    def interleaved(self) -> IntColumn:
        """The brokers that are up in an order at random in which racks take turns."""
        shuffled = [int(broker) for broker in self._random.permutation(self.up)]
        by_rack = [[broker for broker in shuffled if self.rack_of(broker) == rack] for rack in range(len(_RACKS))]
        longest = max(map(len, by_rack))
        order = [rack[place] for place in range(longest) for rack in by_rack if place < len(rack)]
        return np.array(order, np.int32)

    # --- records -------------------------------------------------------------------------------------

    def register(self, broker: int, epoch: int, level: int) -> VersionedRecord:
        """A new incarnation, fenced."""
        self._epochs[broker] = epoch
        host = f"broker-{broker}.example.com"
        record = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=self._random.bytes(16),
            broker_epoch=epoch,
            end_points=(BrokerEndpoint("CONTROLLER", host, 9093, 0), BrokerEndpoint("EXTERNAL", host, 9092, 3)),
            features=(BrokerFeature("kraft.version", 0, 1), BrokerFeature("metadata.version", 7, level)),
            rack=_RACKS[self.rack_of(broker)],
            fenced=True,
            log_dirs=self._directories(broker, range(_DIRECTORIES)),
        )
        return VersionedRecord(record, 4 if level >= _CORDONED_LEVEL else 3)

    def unfence(self, broker: int) -> VersionedRecord:
        """It takes part from here on."""
        return self._change(broker, 0, fenced=_UNFENCE)

    def fence(self, broker: int) -> VersionedRecord:
        """It does not take part any more."""
        return self._change(broker, 0, fenced=_FENCE)

    def shut_down(self, broker: int) -> VersionedRecord:
        """It asks to be relieved."""
        return self._change(broker, 1, in_controlled_shutdown=1)

    def lose_directory(self, broker: int, number: int) -> VersionedRecord:
        """Only its other directory is left."""
        left = [other for other in range(_DIRECTORIES) if other != number]
        return self._change(broker, 2, log_dirs=self._directories(broker, left))

    def unregister(self, broker: int) -> VersionedRecord:
        """It is gone for good."""
        self.ids.remove(broker)
        return VersionedRecord(UnregisterBrokerRecord(broker, self._epochs[broker]), 0)

    def _change(self, broker: int, version: int, **fields: object) -> VersionedRecord:
        record = BrokerRegistrationChangeRecord(broker, self._epochs[broker], **fields)  # type: ignore[arg-type]
        return VersionedRecord(record, version)

    def _directories(self, broker: int, numbers: range | list[int]) -> tuple[bytes, ...]:
        return tuple(self.directory_ids[self.lost_code(broker, number)].tobytes() for number in numbers)
