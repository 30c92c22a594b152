"""Claims: who may be in an ISR though no image shows it."""

import numpy as np

from quorate.broker.controllers.isr_proposals import IsrProposals, proposals_of
from quorate.broker.replicas.claims import Claims, PartitionKey
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import MetadataImage
from tests.unit.controller.small_cluster import SmallCluster, registration

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
    small, key = cluster()
    claims = Claims()
    claims.said(key, small.partition("t").leader_epoch, 2, small.epoch(2))
    assert claims.members(key) == {2}

    assert claims.taken_back(key, 2)
    assert claims.members(key) == frozenset()


def test_claim_that_was_sent_stays_until_it_is_refused() -> None:
    small, key = cluster()
    claims, asked = Claims(), request(small.image, 0, 1)
    claims.sent(asked)

    assert claims.members(key) == {2}, "whoever is asked for may be in, said or not"
    assert not claims.taken_back(key, 2), "nobody knows yet what became of it"
    claims.answered(asked, REFUSED)
    assert claims.taken_back(key, 2)


def test_claim_that_was_granted_stays_until_an_image_shows_it() -> None:
    small, key = cluster()
    claims, asked = Claims(), request(small.image, 0, 1)
    claims.sent(asked)
    claims.answered(asked, GRANTED)
    assert not claims.taken_back(key, 2)

    claims.sent(asked)
    claims.answered(asked, REFUSED)  # its partition epoch has passed: by the grant

    assert not claims.taken_back(key, 2)


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


def test_refusal_settles_its_own_request_and_not_the_one_that_got_no_answer() -> None:
    small, key = cluster()
    claims, asked = Claims(), request(small.image, 0, 1)
    claims.sent(asked)  # no answer: it may still arrive
    claims.sent(asked)
    claims.answered(asked, REFUSED)

    claims.update(small.image)

    assert not claims.taken_back(key, 2)
    assert claims.members(key) == {2}


def test_claim_rests_on_the_registration_under_which_it_was_said() -> None:
    for is_sent in (False, True):
        small, key = cluster()
        claims = Claims()
        claims.said(key, small.partition("t").leader_epoch, 2, small.epoch(2))
        if is_sent:
            claims.sent(request(small.image, 0, 1))
        small.now_ms += 10_000  # its session is over
        small.register(registration(2, incarnation=1))
        claims.update(small.image)

        assert claims.members(key) == frozenset(), "another process has said nothing"


def test_claim_that_was_not_sent_ends_with_the_leader_epoch() -> None:
    small, key = cluster()
    claims = Claims()
    claims.said(key, small.partition("t").leader_epoch, 2, small.epoch(2))
    claims.update(small.image)
    assert claims.members(key) == {2}

    small.heartbeat(1, want_fence=True)
    claims.update(small.image)

    assert claims.members(key) == frozenset()


def test_claim_outlives_its_request_for_as_long_as_the_leader_wants_it() -> None:
    small = SmallCluster()
    small.create("t", [1, 2, 0])
    small.heartbeat(2, want_fence=True)
    small.heartbeat(2)
    key, before = PartitionKey(small.topic_id("t"), 0), small.partition("t")
    claims = Claims()
    claims.said(key, before.leader_epoch, 2, small.epoch(2))
    claims.sent(request(small.image, 0, 1, 2))

    small.heartbeat(0, want_fence=True)  # what was asked for is refused from now on, and is asked for anew
    after = small.partition("t")
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    claims.update(small.image)

    assert claims.members(key) == {2}, "a write that it lacks would be lost by the next request"
    assert claims.taken_back(key, 2)
