"""The made-up cluster's topics: names, ids, which rows of the pool are theirs."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from quorate.metadata_log.batches.runs import ByteColumn, IntColumn
from quorate.metadata_log.ids import Uuid
from quorate.scripts.generated_history.partition_pool import Rows

_TEAMS = ("billing", "clicks", "fleet", "ledger", "mail", "orders", "search", "stock")


class TopicPool:
    """Topics by number, in order of creation; a deleted one's number does not come again."""

    def __init__(self, random: Generator) -> None:
        self._random = random
        self._ids: ByteColumn = np.zeros((64, 16), np.uint8)
        self._min_isrs: IntColumn = np.zeros(64, np.int32)
        self._count = 0
        self.names: list[str] = []
        #: Rows in the pool, by number; empty for a deleted one.
        self.rows: list[Rows] = []
        #: Numbers of the topics there are, in no order.
        self.present: list[int] = []
        self._places: dict[int, int] = {}

    def add(self, name: str, topic_id: Uuid, min_isr: int) -> int:
        """A new topic without partitions; its number."""
        number = self._count
        if number == len(self._ids):
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
            self._min_isrs = np.concatenate([self._min_isrs, np.zeros_like(self._min_isrs)])
        self._ids[number] = np.frombuffer(topic_id, np.uint8)
        self._min_isrs[number] = min_isr
        self._count += 1
        self.names.append(name)
        self.rows.append(np.zeros(0, np.int64))
        self._places[number] = len(self.present)
        self.present.append(number)
        return number

    def remove(self, number: int) -> None:
        """A topic is gone, and its rows with it."""
        place = self._places.pop(number)
        last = self.present.pop()
        if last != number:
            self.present[place] = last
            self._places[last] = place
        self.rows[number] = np.zeros(0, np.int64)
        self.names[number] = ""

    def ids_of(self, numbers: IntColumn) -> ByteColumn:
        """uint8[n, 16]."""
        return self._ids[numbers]

    def id_of(self, number: int) -> Uuid:
        """One topic's id."""
        row: ByteColumn = self._ids[number]
        return row.tobytes()

    def min_isrs_of(self, numbers: IntColumn) -> IntColumn:
        """The values of ``min.insync.replicas``, int32[n]."""
        return self._min_isrs[numbers]

    def set_min_isr(self, number: int, min_isr: int) -> None:
        """It says something else."""
        self._min_isrs[number] = min_isr

    def any(self) -> int:
        """A topic at random; there must be one."""
        return self.present[int(self._random.integers(len(self.present)))]

    def new_name(self) -> str:
        """A name that no topic has had."""
        return f"{_TEAMS[int(self._random.integers(len(_TEAMS)))]}.events-{self._count:06d}"
