"""What brokers register with: new incarnations, and imported ones."""

from dataclasses import replace
from itertools import count

import pytest

from quorate.broker.lifecycle.identity import NotInTheImage, imported_identity, new_identity
from quorate.broker.lifecycle.last_run import CRASHED
from quorate.controller.protocol import Listener
from quorate.metadata_log.records.records import BrokerEndpoint, BrokerFeature, BrokerRegistrationChangeRecord
from quorate.snapshots.image.image import EMPTY_IMAGE
from tests.unit.broker.images import fencing, registration, replayed, uuid

HTTP = (Listener(name="HTTP", host="127.0.0.1", port=9_999),)


_numbers = count(1)


def new_uuid() -> bytes:
    return uuid(next(_numbers))


def test_new_identity_first_time_makes_a_directory_and_an_incarnation() -> None:
    made = new_identity(1, EMPTY_IMAGE, HTTP, "a", new_uuid)

    assert len(made.directories) == 1
    assert made.directories[0] != made.incarnation_id
    assert (made.rack, made.previous_broker_epoch) == ("a", -1)
    assert [(listener.name, listener.port) for listener in made.listeners] == [("HTTP", 9_999)]
    request = made.request("cluster", -1)
    assert (request.cluster_id, request.broker_id) == ("cluster", 1)
    assert {feature.name for feature in request.features} >= {"metadata.version", "kraft.version"}


def test_new_identity_known_broker_keeps_its_directories_and_is_another_incarnation() -> None:
    """Its replicas are registered in those directories: in others they would count as lost."""
    image = replayed(EMPTY_IMAGE, registration(1, epoch=7))
    made = new_identity(1, image, HTTP, None, new_uuid)

    assert made.directories == image.cluster.brokers[1].directories
    assert made.incarnation_id != image.cluster.brokers[1].incarnation_id
    assert made.previous_broker_epoch == -1, "it did not leave in order"


def test_new_identity_after_a_controlled_shutdown_says_so() -> None:
    leaving = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1)
    image = replayed(EMPTY_IMAGE, registration(1, epoch=7), leaving)
    assert new_identity(1, image, HTTP, None, new_uuid).previous_broker_epoch == -1, "it has not left yet"

    left = replayed(image, fencing(1, 7, fenced=True))
    assert new_identity(1, left, HTTP, None, new_uuid).previous_broker_epoch == 7


@pytest.mark.parametrize("last_run", [CRASHED, 5, 7])
def test_new_identity_goes_by_its_last_run_where_that_is_known(last_run: int) -> None:
    """Not by the log: a broker that led nothing is fenced at once, and one that was killed may have been leaving."""
    leaving = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1)
    image = replayed(EMPTY_IMAGE, registration(1, epoch=7), leaving, fencing(1, 7, fenced=True))

    assert new_identity(1, image, HTTP, None, new_uuid, last_run).previous_broker_epoch == last_run


def test_request_of_a_process_that_was_registered_names_its_own_epoch() -> None:
    image = replayed(EMPTY_IMAGE, registration(1, epoch=7))

    assert new_identity(1, image, HTTP, None, new_uuid).request("cluster", 40).previous_broker_epoch == 40


def test_imported_identity_says_everything_as_it_is_registered() -> None:
    record = replace(
        registration(1, epoch=7),
        rack="b",
        end_points=(BrokerEndpoint("PLAINTEXT", "host", 9092, 0),),
        features=(BrokerFeature("metadata.version", 7, 25),),
        log_dirs=(uuid(1), uuid(2)),
    )
    image = replayed(EMPTY_IMAGE, record)
    request = imported_identity(1, image, new_uuid).request("cluster", -1)

    assert request.incarnation_id == record.incarnation_id
    assert request.previous_broker_epoch == -1
    assert request.log_dirs == [uuid(1), uuid(2)]
    assert request.rack == "b"
    assert [(one.name, one.host, one.port) for one in request.listeners] == [("PLAINTEXT", "host", 9092)]
    assert [(one.name, one.max_supported_version) for one in request.features] == [("metadata.version", 25)]


def test_imported_identity_unknown_broker_is_refused_with_the_known_ones() -> None:
    image = replayed(EMPTY_IMAGE, registration(1), registration(4))

    with pytest.raises(NotInTheImage, match="broker 2 is not registered in the metadata; registered are: 1, 4"):
        imported_identity(2, image, new_uuid)


LEAVING = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1)
FENCED = fencing(1, 7, fenced=True)


@pytest.mark.parametrize(
    ("records", "last_run", "goes_on", "previous_epoch"),
    [
        ((), None, True, -1),
        ((FENCED,), None, False, -1),
        ((LEAVING, FENCED), None, False, 7),
        ((LEAVING,), None, False, 7),  # nobody killed it since
        ((), CRASHED, False, -1),
        ((LEAVING,), CRASHED, False, -1),
        ((FENCED,), 7, False, 7),  # it led nothing, so it was fenced at once
        ((), 7, False, 7),  # nobody took its partitions over in time
    ],
    ids=["alive", "crashed", "left", "was leaving", "killed here", "killed leaving", "left here", "gave up waiting"],
)
def test_imported_identity_of_a_broker_that_is_not_alive_is_another_incarnation(
    records: tuple[BrokerRegistrationChangeRecord, ...], last_run: int | None, goes_on: bool, previous_epoch: int
) -> None:
    """Flags of a registration end with its incarnation only: under the old one it would never be unfenced for good."""
    registered = replace(registration(1, epoch=7), rack="b")
    made = imported_identity(1, replayed(EMPTY_IMAGE, registered, *records), new_uuid, last_run)

    assert (made.incarnation_id == registered.incarnation_id, made.previous_broker_epoch) == (goes_on, previous_epoch)
    assert (made.rack, made.directories) == ("b", registered.log_dirs)
