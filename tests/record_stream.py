"""Random streams of records that can be replayed: valid, but far odder than any controller would write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
from hypothesis import settings

from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun, PartitionRun
from quorate.metadata_log.ids import DIRECTORY_UNASSIGNED
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.records import VersionedRecord
from quorate.snapshots.image.labels import Label, config_of
from tests.image_model import NaiveImage

#: Examples of a property over whole streams: each is worth many of the usual ones, and as long.
EXAMPLES = max(1, settings.default.max_examples // 10) if settings.default else 10

NEWEST = {
    "RegisterBrokerRecord": 4,
    "PartitionRecord": 2,
    "PartitionChangeRecord": 2,
    "BrokerRegistrationChangeRecord": 3,
}


#: Stands for a resource of a label, among those of configs.
LABELLED = (0, "record:sub")


class RecordStream:
    """Makes one operation after another; each is a list of records that belong together."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.model = NaiveImage()
        self._brokers = [*self.random.sample(range(100), 6), 2**31 - 1]
        self._directories = [self.random.randbytes(16) for _ in range(8)] + [DIRECTORY_UNASSIGNED]

    def operations(self, count: int) -> Iterator[list[Any]]:
        """That many operations, each already applied to ``model``."""
        makers: list[Callable[[], list[Any]]] = [
            self._create_topic,
            self._create_topic,
            self._change_partitions,
            self._change_partitions,
            self._change_partitions,
            self._declare_again,
            self._remove_topic,
            self._clear_elr,
            self._register,
            self._change_registration,
            self._set_resources,
            self._set_identities,
        ]
        for _ in range(count):
            records = self.random.choice(makers)()
            for record in records:
                self.model.apply(record)
            yield records

    def records(self, operations: int) -> list[Any]:
        """All records of some operations."""
        return [record for operation in self.operations(operations) for record in operation]

    # --- partitions ----------------------------------------------------------------------------------

    def _create_topic(self) -> list[Any]:
        topic_id = self.random.randbytes(16)
        name = f"t{len(self.model.topics)}-{topic_id.hex()[:8]}"
        numbers = list(range(self.random.choice((0, 1, 3, 40))))
        self.random.shuffle(numbers)
        return [r.TopicRecord(name, topic_id), *(self._partition(topic_id, number) for number in numbers)]

    def _declare_again(self) -> list[Any]:
        topics = list(self.model.topics)
        if not topics:
            return [r.NoOpRecord()]
        topic_id = self.random.choice(topics)
        return [self._partition(topic_id, self.random.randrange(60)) for _ in range(self.random.randrange(1, 40))]

    def _partition(self, topic_id: bytes, number: int) -> r.PartitionRecord:
        replicas = self._ids(0, 4)
        has_directories = self.random.random() < 0.9
        return r.PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=replicas,
            isr=self._some(replicas),
            removing_replicas=self._rarely(replicas) or (),
            adding_replicas=self._rarely(replicas) or (),
            leader=self._leader(replicas),
            leader_recovery_state=self.random.choice((0, 0, 0, 1)),
            leader_epoch=self.random.randrange(100),
            partition_epoch=self.random.randrange(100),
            directories=self._dirs(len(replicas)) if has_directories else (),
            eligible_leader_replicas=self._rarely(replicas) or None,
            last_known_elr=self.random.choice((None, None, None, (-1,), self._ids(1, 1))),
        )

    def _change_partitions(self) -> list[Any]:
        """Changes of one or two shapes to partitions at random, some more than once."""
        keys = list(self.model.partitions)
        if not keys:
            return [r.NoOpRecord()]
        shapes = [self._shape() for _ in range(self.random.choice((1, 1, 2)))]
        count = self.random.choice((1, 1, 5, 40, len(keys)))
        chosen = self.random.sample(keys, min(count, len(keys)))
        if self.random.random() < 0.3:
            chosen += self.random.choices(keys, k=3)
        return self._changes(chosen, shapes)

    def _changes(self, keys: Sequence[tuple[bytes, int]], shapes: list[frozenset[str]]) -> list[Any]:
        now = dict(self.model.partitions)
        return [self._change(key, now, self.random.choice(shapes)) for key in keys]

    def _shape(self) -> frozenset[str]:
        names = ("isr", "leader", "replicas", "removing", "adding", "recovery", "directories", "elr", "last_known")
        weights = (0.5, 0.5, 0.15, 0.1, 0.1, 0.2, 0.15, 0.3, 0.2)
        return frozenset(name for name, weight in zip(names, weights, strict=True) if self.random.random() < weight)

    def _change(self, key: tuple[bytes, int], now: dict[Any, Any], shape: frozenset[str]) -> Any:
        replicas = self._ids(0, 4) if "replicas" in shape else now[key].replicas
        record = r.PartitionChangeRecord(
            partition_id=key[1],
            topic_id=key[0],
            isr=self._some(replicas) if "isr" in shape else None,
            leader=self._leader(replicas) if "leader" in shape else -2,
            replicas=replicas if "replicas" in shape else None,
            removing_replicas=(self._rarely(replicas) or ()) if "removing" in shape else None,
            adding_replicas=(self._rarely(replicas) or ()) if "adding" in shape else None,
            leader_recovery_state=self.random.choice((0, 1)) if "recovery" in shape else -1,
            directories=self._dirs(len(replicas)) if "directories" in shape else None,
            eligible_leader_replicas=self._some((*replicas, *self._ids(0, 1))) if "elr" in shape else None,
            last_known_elr=self.random.choice(((), (-1,), self._ids(1, 1))) if "last_known" in shape else None,
        )
        if "replicas" in shape:  # a later change of the same partition must fit these replicas
            now[key] = record
        return record

    def _ids(self, low: int, high: int) -> tuple[int, ...]:
        return tuple(self.random.sample(self._brokers, self.random.randint(low, high)))

    def _some(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        unique = list(dict.fromkeys(ids))
        if self.random.random() < 0.4:
            return tuple(unique)
        return tuple(self.random.sample(unique, self.random.randint(0, len(unique))))

    def _rarely(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return self._some((*ids, *self._ids(0, 1))) if self.random.random() < 0.15 else ()

    def _leader(self, replicas: tuple[int, ...]) -> int:
        return self.random.choice((-1, *replicas, *replicas, *self._ids(0, 1)))

    def _dirs(self, count: int) -> tuple[bytes, ...]:
        if self.random.random() < 0.1:
            self._directories.append(self.random.randbytes(16))
        return tuple(self.random.choices(self._directories, k=count))

    def _remove_topic(self) -> list[Any]:
        topics = list(self.model.topics)
        return [r.RemoveTopicRecord(self.random.choice(topics))] if topics else [r.NoOpRecord()]

    def _clear_elr(self) -> list[Any]:
        return [r.ClearElrRecord(self.random.choice(("", *self.model.topics.values())))]

    # --- the rest ------------------------------------------------------------------------------------

    def _register(self) -> list[Any]:
        number = self.random.choice(self._brokers)
        broker = r.RegisterBrokerRecord(
            broker_id=number,
            is_migrating_zk_broker=self.random.random() < 0.1,
            incarnation_id=self.random.randbytes(16),
            broker_epoch=self.random.randrange(1000),
            end_points=tuple(r.BrokerEndpoint(name, "host", 9092, 0) for name in self._names("SASL", "PLAINTEXT", "X")),
            features=tuple(r.BrokerFeature(name, 0, 9) for name in self._names("metadata.version", "group.version")),
            rack=self.random.choice((None, "a", "ünïcode")),
            fenced=self.random.random() < 0.5,
            log_dirs=tuple(self.random.sample(self._directories, 2)),
            cordoned_log_dirs=self.random.choice((None, (), (self._directories[0],))),
        )
        controller = r.RegisterControllerRecord(
            controller_id=number % 3,
            incarnation_id=self.random.randbytes(16),
            end_points=(r.ControllerEndpoint("CONTROLLER", "host", 9093, 0),),
            features=(r.ControllerFeature("metadata.version", 7, 30),),
        )
        return [broker, controller][: self.random.randint(1, 2)]

    def _names(self, *names: str) -> list[str]:
        return self.random.sample(names, self.random.randint(0, len(names)))

    def _change_registration(self) -> list[Any]:
        if not self.model.brokers:
            return [r.NoOpRecord()]
        broker = self.random.choice(list(self.model.brokers.values()))
        known = (broker.broker_id, broker.broker_epoch)
        change = r.BrokerRegistrationChangeRecord(
            *known,
            fenced=self.random.choice((-1, 0, 1)),
            in_controlled_shutdown=self.random.choice((0, 1)),
            log_dirs=self.random.choice(((), (self._directories[1],))),
            cordoned_log_dirs=self.random.choice((None, (), (self._directories[2],))),
        )
        legacy = self.random.choice((r.FenceBrokerRecord, r.UnfenceBrokerRecord))(*known)
        return [self.random.choice((change, change, legacy, r.UnregisterBrokerRecord(*known)))]

    def _set_resources(self) -> list[Any]:
        topics = list(self.model.topics.values())
        resource = self.random.choice([(2, name) for name in topics] + [(4, ""), (4, "11"), LABELLED, (32, "group")])
        value = self.random.choice((None, "1", "2"))
        entity = tuple(r.EntityData(kind, self.random.choice((None, "x"))) for kind in self._names("user", "client-id"))
        remove = self.random.random() < 0.3
        quota = r.ClientQuotaRecord(entity, self.random.choice("ab"), 0.0 if remove else self.random.random(), remove)
        ids = r.ProducerIdsRecord(1, 1, (self.model.next_producer_id or 0) + self.random.randint(1, 1000))
        return [
            self._config(resource, self.random.choice(("min.insync.replicas", "retention.ms")), value),
            *([quota] if entity else []),
            *([ids] if self.random.random() < 0.2 else []),
        ]

    def _config(self, resource: tuple[int, str], name: str, value: str | None) -> r.ConfigRecord:
        if resource == LABELLED:
            return r.ConfigRecord(*config_of(Label(LABELLED[1], f"acme/{name}")), value)
        return r.ConfigRecord(*resource, name, value)

    def _set_identities(self) -> list[Any]:
        acls = [key for key in self.model.others if isinstance(key, bytes)]
        scram = [key for key in self.model.others if isinstance(key, tuple)]
        options: list[Any] = [
            r.AccessControlEntryRecord(self.random.randbytes(16), 2, "topic", 3, "User:x", "*", 3, 3),
            r.UserScramCredentialRecord(self.random.choice("xyz"), self.random.choice((1, 2)), b"s", b"k", b"v", 4096),
            r.DelegationTokenRecord("User:x", "User:y", ("User:z",), 1, 3, 2, self.random.choice("abc")),
            r.RemoveDelegationTokenRecord(self.random.choice("abc")),
            r.FeatureLevelRecord(self.random.choice(("group.version", "x")), self.random.choice((0, 1, 2))),
            r.ZkMigrationStateRecord(self.random.choice((0, 3))),
            r.NoOpRecord(),
        ]
        if acls:
            options.append(r.RemoveAccessControlEntryRecord(self.random.choice(acls)))
        if scram:
            options.append(r.RemoveUserScramCredentialRecord(*self.random.choice(scram)))
        return [self.random.choice(options)]


def versioned(record: Any) -> VersionedRecord:
    """A record at the newest version."""
    return VersionedRecord(record, NEWEST.get(type(record).__name__, 0))


def as_runs(records: Sequence[Any]) -> list[BatchItem]:
    """The same records with neighbours of one mass type and shape as runs, however short."""
    items: list[BatchItem] = []
    stretch: list[Any] = []
    for record in [*records, None]:
        if stretch and (record is None or _shape_of(record) != _shape_of(stretch[0])):
            items.append(_run(stretch))
            stretch = []
        if isinstance(record, (r.PartitionRecord, r.PartitionChangeRecord)):
            stretch.append(record)
        elif record is not None:
            items.append(versioned(record))
    return items


def _shape_of(record: Any) -> tuple[Any, ...]:
    if not isinstance(record, (r.PartitionRecord, r.PartitionChangeRecord)):
        return ()
    fields = [getattr(record, name) for name in record.__slots__]
    return (type(record), *(len(value) if isinstance(value, tuple) else str(value is None) for value in fields))


_RUN_NAMES = {"partition_id": "partition_ids", "topic_id": "topic_ids"}


def _run(records: list[Any]) -> PartitionRun | PartitionChangeRun:
    columns: dict[str, Any] = {}
    for name in records[0].__slots__:
        values = [getattr(record, name) for record in records]
        if values[0] is not None:
            columns[_RUN_NAMES.get(name, name)] = _column(name, values)
    if isinstance(records[0], r.PartitionRecord):
        return PartitionRun(version=2, **columns)
    return PartitionChangeRun(version=2, **columns)


def _column(name: str, values: list[Any]) -> np.ndarray[Any, Any]:
    if name == "topic_id":
        return np.frombuffer(b"".join(values), np.uint8).reshape(-1, 16)
    if name == "directories":
        return np.frombuffer(b"".join(b"".join(row) for row in values), np.uint8).reshape(
            len(values), len(values[0]), 16
        )
    if name == "leader_recovery_state":
        return np.array(values, np.int8)
    return np.array(values, np.int32)
