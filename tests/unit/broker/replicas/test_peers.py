"""Where other broker processes are: registered, told, or heard; and never anywhere but on this machine."""

from dataclasses import replace

from quorate.broker.replicas.peers import LOCAL, PeerAddresses
from quorate.metadata_log.records.records import BrokerEndpoint
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import registration, replayed


def image(*listeners: tuple[str, str, int]) -> MetadataImage:
    """Broker 1, 2, ... with one listener each: name, host, port."""
    ends = [BrokerEndpoint(name, host, port, 0) for name, host, port in listeners]
    return replayed(EMPTY_IMAGE, *(replace(registration(n), end_points=(end,)) for n, end in enumerate(ends, start=1)))


def test_addresses_are_those_registered_or_told_or_heard_in_this_order() -> None:
    known = image(("HTTP", "127.0.0.1", 81), ("PLAINTEXT", "k", 9092), ("PLAINTEXT", "k", 9092), ("HTTP", "::1", 84))
    addresses = PeerAddresses({2: "127.0.0.1:82"})

    assert addresses.in_image(known, [9], {1: "127.0.0.1:1", 2: "127.0.0.1:2", 3: "127.0.0.1:83"}) == {
        1: "127.0.0.1:81", 2: "127.0.0.1:82", 3: "127.0.0.1:83", 4: "[::1]:84", 9: LOCAL,
    }  # fmt: skip


def test_addresses_elsewhere_are_never_dialled() -> None:
    """The shared secret goes with a message: a registration must not be able to ask for it."""
    known = image(("HTTP", "10.0.0.7", 80), ("HTTP", "example.org", 80), ("PLAINTEXT", "k", 9092))

    assert PeerAddresses({}).in_image(known, [], {3: "10.0.0.7:80"}) == {}
