"""Claims: who may be in an ISR though no image shows it."""

import numpy as np

from quorate.broker.controllers.isr_proposals import IsrProposals, proposals_of
from quorate.broker.replicas.claims import Claims, PartitionKey
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import MetadataImage
from tests.unit.controller.small_cluster import SmallCluster

REFUSED, GRANTED = np.array([ErrorCode.INELIGIBLE_REPLICA], np.int16), np.array([ErrorCode.NONE], np.int16)


def cluster() -> tuple[SmallCluster, PartitionKey]:
    """A partition of brokers 1 and 2, led by 1, of which 2 has left the ISR."""
    small = SmallCluster()
    small.create("t", [1, 2])
    small.heartbeat(2, want_fence=True)
    small.heartbeat(2)
    return small, PartitionKey(small.image.topics.by_name["t"].id, 0)


def request(image: MetadataImage, *slots: int) -> IsrProposals:
    """Leader 1 asks for the replicas in these slots."""
    columns = image.partitions.gather(np.array([0]))
    mask = np.array([sum(1 << slot for slot in slots)], np.uint64)
    return proposals_of(1, image, columns, np.array([0]), mask)


def test_claim_that_no_request_carries_is_taken_back_at_once() -> None:
    _, key = cluster()
    claims = Claims()
    claims.said(key, 0, 2)
    assert claims.members(key) == {2}

    assert claims.taken_back(key, 2)
    assert claims.members(key) == frozenset()


def test_claim_that_was_sent_stays_until_it_is_refused() -> None:
    small, key = cluster()
    claims, asked = Claims(), request(small.image, 0, 1)
    claims.sent(asked)

    assert claims.members(key) == {2}, "whoever is asked for may be in, said or not"
    assert not claims.taken_back(key, 2), "nobody knows yet what became of it"
    claims.answered(asked, GRANTED)
    assert not claims.taken_back(key, 2), "granted: an image will show it"
    claims.sent(asked)
    claims.answered(asked, REFUSED)
    assert claims.taken_back(key, 2)


def test_refusal_of_an_older_request_says_nothing_of_a_newer_one() -> None:
    small, key = cluster()
    claims, older = Claims(), request(small.image, 0, 1)
    claims.sent(older)
    small.heartbeat(1, want_fence=True)
    small.heartbeat(1)
    newer = request(small.image, 0, 1)
    assert newer.partition_epochs[0] > older.partition_epochs[0]
    claims.sent(newer)

    claims.answered(older, REFUSED)

    assert not claims.taken_back(key, 2)


def test_image_of_a_later_partition_epoch_shows_what_became_of_it() -> None:
    small, key = cluster()
    claims = Claims()
    claims.sent(request(small.image, 0, 1))
    claims.update(small.image)
    assert claims.members(key) == {2}

    small.heartbeat(1, want_fence=True)  # the partition changes, and 2 is not in the ISR: it cannot enter any more
    claims.update(small.image)

    assert claims.members(key) == frozenset()
