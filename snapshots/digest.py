"""The digest of a state: canonical, independent of order, equal wherever the same records have been replayed.

A *leaf* is one topic with all its partitions, or one other entry of the state. It is the BLAKE2b-256 of the values, as
they stand in the log, of the records that a snapshot has for it: at the newest record version, sets sorted, no
provenance. The values are simply joined: each tells its own length. The *root* is the sum of all leaves, taken as
big-endian numbers, modulo 2^256.

This module knows records only, so whoever replays by other means can use it. ``snapshots.image_digest`` digests images.
Test vectors: ``tests/golden/digest_vectors.json``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from quorate.metadata_log.ids import DIRECTORY_MIGRATING
from quorate.metadata_log.records.codec import encode_control, encode_value
from quorate.metadata_log.records.records import (
    ClientQuotaRecord,
    ControlRecord,
    DataRecord,
    KRaftVersionRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    VotersRecord,
)
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.metadata_log.records.wire import Buffer

DIGEST_BYTES: Final = 32
MODULUS: Final = 1 << (8 * DIGEST_BYTES)


def leaf(values: Iterable[Buffer]) -> int:
    """The leaf of one entity, of its records' values in order."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for value in values:
        digest.update(value)
    return int.from_bytes(digest.digest(), "big")


def topic_leaf(topic: TopicRecord, partitions: Iterable[PartitionRecord]) -> int:
    """The leaf of a topic.

    Args:
        partitions: each partition once, whole, in any order.
    """
    ordered = sorted(partitions, key=lambda partition: partition.partition_id)
    return leaf([canonical_value(topic), *(canonical_value(partition) for partition in ordered)])


def entry_leaf(record: DataRecord | ControlRecord) -> int:
    """The leaf of any other entry: a feature level, registration, config, quota, next producer id, ACL, credential,
    token, ``kraft.version`` or voter set."""
    return leaf([canonical_value(record)])


def root(leaves: Iterable[int]) -> int:
    """The digest of a state with these leaves, each once."""
    return sum(leaves) % MODULUS


def digest_bytes(root_number: int) -> bytes:
    """A root as 32 bytes."""
    return root_number.to_bytes(DIGEST_BYTES, "big")


def canonical_value(record: DataRecord | ControlRecord) -> bytes:
    """A record's value at the newest version, with its sets sorted; of a control record, key and value."""
    version = SCHEMA_OF_CLASS[type(record)].versions.last
    if isinstance(record, (KRaftVersionRecord, VotersRecord)):
        return b"".join(encode_control(_canonical(record), version))
    return encode_value(_canonical(record), version)


def _canonical(record: DataRecord | ControlRecord) -> DataRecord | ControlRecord:
    if isinstance(record, PartitionRecord):
        return replace(
            record,
            removing_replicas=tuple(sorted(record.removing_replicas)),
            adding_replicas=tuple(sorted(record.adding_replicas)),
            directories=record.directories or (DIRECTORY_MIGRATING,) * len(record.replicas),
            eligible_leader_replicas=tuple(sorted(record.eligible_leader_replicas or ())) or None,
            last_known_elr=tuple(sorted(record.last_known_elr or ())) or None,
        )
    if isinstance(record, RegisterBrokerRecord):
        return replace(
            record,
            end_points=tuple(sorted(record.end_points, key=lambda end_point: end_point.name)),
            features=tuple(sorted(record.features, key=lambda feature: feature.name)),
            log_dirs=tuple(sorted(record.log_dirs)),
            cordoned_log_dirs=tuple(sorted(record.cordoned_log_dirs or ())),
        )
    if isinstance(record, RegisterControllerRecord):
        return replace(
            record,
            end_points=tuple(sorted(record.end_points, key=lambda end_point: end_point.name)),
            features=tuple(sorted(record.features, key=lambda feature: feature.name)),
        )
    if isinstance(record, ClientQuotaRecord):
        return replace(record, entity=tuple(sorted(record.entity, key=lambda part: part.entity_type)))
    if isinstance(record, VotersRecord):
        voters = (
            replace(voter, endpoints=tuple(sorted(voter.endpoints, key=lambda endpoint: endpoint.name)))
            for voter in sorted(record.voters, key=lambda voter: voter.voter_id)
        )
        return VotersRecord(tuple(voters))
    return record
