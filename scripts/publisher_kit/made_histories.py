"""Small histories of a cluster, made from a seed: the kinds of changes that a publisher has to follow, close together.

The same seed makes the same batches, whoever asks. Brokers come, go and are fenced; topics of a few names are made,
grow, are deleted and made again under new ids; partitions change leaders, ISRs and replicas; labels come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.ids import NO_LEADER, Uuid
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.snapshots.image.image_parts import METADATA_VERSION, TOPIC_RESOURCE
from quorate.snapshots.image.labels import Label, config_of
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.partition import Partition

#: Brokers that appear in made histories: whom a publisher may take itself for.
HISTORY_BROKERS: Final = (1, 2, 3, 4)
_TOPICS: Final = ("orders", "payments", "users")
_LABEL_KEYS: Final = ("acme/owner", "acme/schema")
_BATCHES: Final = 48
_FEATURE_LEVEL: Final = 25
#: Versions of the records that this level of metadata.version writes; 0 where none is named.
_VERSIONS: Final[dict[type[object], int]] = {RegisterBrokerRecord: 3, PartitionRecord: 2, PartitionChangeRecord: 2}
_TIME_MS, _STEP_MS = 1_700_000_000_000, 500


def made_history(seed: int) -> Iterator[bytes]:
    """The batches of one history, from offset 0 on."""
    maker = _HistoryMaker(Random(seed))
    for number in range(_BATCHES):
        yield maker.batch(number)


class _HistoryMaker:
    """The history made so far. Records are chosen by the state that they lead to, so all of them can be replayed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._state = ReplayState()
        self._epoch = 1
        self._changes: list[Callable[[], Sequence[Record]]] = [
            self._register,
            self._fence,
            self._unregister,
            self._create_topic,
            self._create_topic,
            self._grow_topic,
            self._delete_topic,
            self._move_leader,
            self._move_leader,
            self._change_isr,
            self._reassign,
            self._set_config,
            self._set_label,
            self._set_label,
            lambda: [NoOpRecord()],
        ]

    def batch(self, number: int) -> bytes:
        """One more batch: several changes at times, as a controller joins them."""
        if number == 0:
            records: list[Record] = [FeatureLevelRecord(METADATA_VERSION, _FEATURE_LEVEL), *self._register()]
        else:
            records = list(self._random.choice(self._changes)()) or [NoOpRecord()]
        self._epoch += self._random.random() < 0.05
        versioned = [(record, _VERSIONS.get(type(record), 0)) for record in records]
        data = data_batch(versioned, _TIME_MS + number * _STEP_MS)
        placed = place_batch(data, self._state.end_offset, self._epoch)
        self._state = self._state.replay_batch(placed)
        return placed

    # --- brokers -------------------------------------------------------------------------------------

    @property
    def _registered(self) -> list[int]:
        return sorted(self._state.stable.cluster.brokers)

    @property
    def _alive(self) -> list[int]:
        brokers = self._state.stable.cluster.brokers
        return [broker for broker in self._registered if not brokers[broker].is_fenced]

    def _register(self) -> list[Record]:
        """Brokers that are not registered, or one that comes back as another incarnation."""
        missing = [broker for broker in HISTORY_BROKERS if broker not in self._registered]
        epoch = self._state.end_offset + 1
        return [
            record
            for broker in missing or [self._random.choice(HISTORY_BROKERS)]
            for record in (
                RegisterBrokerRecord(
                    broker_id=broker,
                    incarnation_id=self._uuid(),
                    broker_epoch=epoch,
                    fenced=bool(self._alive) and self._random.random() < 0.3,
                    rack=self._random.choice((None, "a", "b")),
                    log_dirs=(self._uuid(),),
                ),
                *self._leave(broker),
            )
        ]

    def _fence(self) -> list[Record]:
        brokers = list(self._state.stable.cluster.brokers.values())
        if not brokers:
            return []
        broker = self._random.choice(brokers)
        fenced = -1 if broker.is_fenced else 1
        change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced)
        return [change, *([] if broker.is_fenced else self._leave(broker.id))]

    def _unregister(self) -> list[Record]:
        brokers = list(self._state.stable.cluster.brokers.values())
        if len(brokers) < len(HISTORY_BROKERS) or self._random.random() < 0.5:
            return []
        broker = self._random.choice(brokers)
        return [
            UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
            *self._leave(broker.id),
            *self._without_labels(f"broker:{broker.id}"),
        ]

    def _leave(self, broker: int) -> list[Record]:
        """A broker leaves the ISRs in which it is not alone, and leads nothing any more."""
        table = self._state.stable.partitions
        changes: list[Record] = []
        for row in table.rows_with_isr(broker).tolist():
            state = table.partition(row)
            others = tuple(one for one in state.isr if one != broker)
            heirs = [one for one in others if one in self._alive]
            leader = heirs[0] if heirs else NO_LEADER
            change = PartitionChangeRecord(
                table.partition_id(row), table.topic_id(row), isr=others or state.isr, leader=leader
            )
            changes.append(change)
        return changes

    # --- topics --------------------------------------------------------------------------------------

    @property
    def _topics(self) -> dict[str, Uuid]:
        return {name: topic.id for name, topic in sorted(self._state.stable.topics.by_name.items())}

    def _create_topic(self) -> list[Record]:
        free = [name for name in _TOPICS if name not in self._topics]
        if not free or not self._registered:
            return self._delete_and_create_topic()
        return self._new_topic(self._random.choice(free))

    def _delete_and_create_topic(self) -> list[Record]:
        """One name, two topics: the second has another id, and nothing of the first."""
        if not self._topics:
            return []
        name = self._random.choice(list(self._topics))
        return [*self._removed_topic(name), *self._new_topic(name)]

    def _new_topic(self, name: str) -> list[Record]:
        topic_id = self._uuid()
        count = self._random.randint(1, 3)
        return [TopicRecord(name, topic_id), *(self._partition(topic_id, number) for number in range(count))]

    def _grow_topic(self) -> list[Record]:
        if not self._topics or not self._registered:
            return []
        topic_id = self._random.choice(list(self._topics.values()))
        return [self._partition(topic_id, len(self._numbers(topic_id)))]

    def _delete_topic(self) -> list[Record]:
        return self._removed_topic(self._random.choice(list(self._topics))) if self._topics else []

    def _removed_topic(self, name: str) -> list[Record]:
        topic_id = self._topics[name]
        partitions = (f"partition:{name}-{number}" for number in self._numbers(topic_id))
        return [*self._without_labels(f"topic:{name}", *partitions), RemoveTopicRecord(topic_id)]

    def _numbers(self, topic_id: Uuid) -> list[int]:
        return [number for number, _ in self._state.stable.partitions.partitions_of(topic_id)]

    def _set_config(self) -> list[Record]:
        if not self._topics:
            return []
        value = self._random.choice((None, "1000", "2000"))
        return [ConfigRecord(TOPIC_RESOURCE, self._random.choice(list(self._topics)), "retention.ms", value)]

    # --- labels --------------------------------------------------------------------------------------

    def _set_label(self) -> list[Record]:
        """A label of anything that there is: new, of another value, or gone."""
        labels = self._state.stable.labels
        labelled = sorted(labels.resources)
        resource = self._random.choice(labelled if labelled and self._random.random() < 0.5 else self._things())
        if labels.of(resource) and self._random.random() < 0.5:
            return [_label(resource, self._random.choice(sorted(labels.of(resource))), None)]
        return [_label(resource, self._random.choice(_LABEL_KEYS), self._random.choice(("1", "2", "3")))]

    def _things(self) -> list[str]:
        """Name everything that can have labels."""
        return [
            "cluster",
            "record:routing",
            *(f"broker:{broker}" for broker in self._registered),
            *(f"topic:{name}" for name in self._topics),
            *(f"partition:{name}-{number}" for name, one in self._topics.items() for number in self._numbers(one)),
        ]

    def _without_labels(self, *resources: str) -> list[Record]:
        """Remove all labels of things that go."""
        labels = self._state.stable.labels
        return [_label(resource, key, None) for resource in resources for key in sorted(labels.of(resource))]

    # --- partitions ----------------------------------------------------------------------------------

    def _partition(self, topic_id: Uuid, number: int) -> PartitionRecord:
        replicas = self._replicas()
        return PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=self._leader(replicas),
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(self._uuid() for _ in replicas),
        )

    def _replicas(self) -> tuple[int, ...]:
        brokers = self._registered or list(HISTORY_BROKERS)
        return tuple(self._random.sample(brokers, self._random.randint(1, len(brokers))))

    def _leader(self, isr: Sequence[int]) -> int:
        """Any of those that may lead, or nobody."""
        return self._random.choice((NO_LEADER, *(2 * [one for one in isr if one in self._alive])))

    def _chosen(self) -> list[tuple[Uuid, int, Partition]]:
        """One partition, or all of a topic."""
        if not self._topics:
            return []
        topic_id = self._random.choice(list(self._topics.values()))
        found = [(topic_id, number, state) for number, state in self._state.stable.partitions.partitions_of(topic_id)]
        return found if self._random.random() < 0.3 else self._random.sample(found, 1)

    def _move_leader(self) -> list[Record]:
        return [
            PartitionChangeRecord(number, topic_id, leader=self._leader(state.isr))
            for topic_id, number, state in self._chosen()
        ]

    def _change_isr(self) -> list[Record]:
        return [
            PartitionChangeRecord(number, topic_id, isr=self._isr(state)) for topic_id, number, state in self._chosen()
        ]

    def _reassign(self) -> list[Record]:
        changes: list[Record] = []
        for topic_id, number, _ in self._chosen():
            replicas = self._replicas()
            changes.append(
                PartitionChangeRecord(
                    number,
                    topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=self._leader(replicas),
                    directories=tuple(self._uuid() for _ in replicas),
                )
            )
        return changes

    def _isr(self, state: Partition) -> tuple[int, ...]:
        """Some of the replicas, the leader among them."""
        some = self._random.sample(state.replicas, self._random.randint(1, len(state.replicas)))
        return tuple(dict.fromkeys([state.leader, *some] if state.has_leader else some))

    def _uuid(self) -> Uuid:
        return self._random.randbytes(16)


def _label(resource: str, key: str, value: str | None) -> Record:
    return ConfigRecord(*config_of(Label(resource, key)), value)
