"""Who is talked to, and who listens where."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from quorate.quorum.config import InvalidQuorumConfig, VoterAddress
from quorate.quorum.errors import HandshakeRefused, Superseded
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.handshake import (
    Hello,
    agreed_version,
    check_binding,
    check_generation,
    check_hello,
    decode_hello,
    encode_hello,
    own_hello,
    proof,
)
from quorate.quorum.versions import NEWEST_VERSION
from tests.default_parts import quorum_config

VOTERS = tuple(VoterAddress(node_id, "127.0.0.1", 9000 + node_id, bytes([node_id]) * 16) for node_id in (1, 2, 3))
CONFIG = quorum_config("cluster", 1, VOTERS[0].directory_id, VOTERS)


def hello_of(node_id: int) -> Hello:
    config = replace(CONFIG, node_id=node_id, directory_id=VOTERS[node_id - 1].directory_id)
    return own_hello(config, Channel.BULK, is_voter=True, nonce=b"n" * 16)


def test_hello_of_a_peer_is_accepted() -> None:
    hello = decode_hello(encode_hello(hello_of(2)))

    check_hello(CONFIG, hello, expected_node=2)
    assert agreed_version(CONFIG, hello) == NEWEST_VERSION
    assert hello == hello_of(2)


@pytest.mark.parametrize(
    ("own", "oldest", "newest", "spoken"),
    [(5, 4, 5, 5), (5, 4, 4, 4), (4, 4, 5, 4), (5, 5, 9, 5), (5, 1, 4, 4)],
)
def test_two_nodes_speak_the_newest_version_that_both_know(own: int, oldest: int, newest: int, spoken: int) -> None:
    theirs = replace(hello_of(2), oldest_version=oldest, newest_version=newest)
    assert agreed_version(replace(CONFIG, newest_version=own), theirs) == spoken


@pytest.mark.parametrize(("own", "oldest", "newest"), [(5, 6, 9), (5, 1, 3), (4, 5, 6)])
def test_nodes_that_know_no_version_of_each_other_say_which_they_know(own: int, oldest: int, newest: int) -> None:
    theirs = replace(hello_of(2), oldest_version=oldest, newest_version=newest)
    with pytest.raises(HandshakeRefused, match=f"node 2 speaks versions {oldest} to {newest}, this node 4 to {own}"):
        agreed_version(replace(CONFIG, newest_version=own), theirs)


def test_hello_may_say_more_than_is_known() -> None:
    """That of a later release: what is behind the known fields is its business."""
    longer = msgpack.packb([*msgpack.unpackb(encode_hello(hello_of(2))), "more", 7])
    assert decode_hello(longer) == hello_of(2)


def test_hello_before_versions_were_agreed_on_is_refused_with_what_to_do() -> None:
    fields = msgpack.unpackb(encode_hello(hello_of(2)))
    with pytest.raises(HandshakeRefused, match="version 3 alone, this node 4 and above: stop all controllers"):
        decode_hello(msgpack.packb([3, *fields[2:]]))


@pytest.mark.parametrize(
    "change",
    [
        {"cluster_id": "another"},
        {"node_id": 9},
        {"node_id": 1},
        {"node_id": 3},
        {"voter_set_crc": 5},
    ],
    ids=str,
)
def test_hello_that_differs_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(HandshakeRefused):
        check_hello(CONFIG, replace(hello_of(2), **change), expected_node=2)  # type: ignore[arg-type]


def test_generations_are_compared_only_by_those_who_proved_who_they_are() -> None:
    """Of a newer generation anything may be configured; the older side must not be turned away before it knows."""
    newer = replace(hello_of(2), generation=1004, voter_set_crc=5)
    founded = replace(CONFIG, generation=2008)

    check_hello(CONFIG, newer, expected_node=2)
    check_hello(founded, newer, expected_node=2)
    with pytest.raises(Superseded, match=r"node 2 is of generation 1004, this one of generation 0"):
        check_generation(CONFIG, newer)
    with pytest.raises(HandshakeRefused, match=r"node 2 is of generation 1004: .* generation 2008"):
        check_generation(founded, newer)
    check_generation(replace(CONFIG, generation=1004), newer)


@pytest.mark.parametrize(
    "frame",
    [
        *(b"", b"\xc1", b"\x90", b"\x01", encode_hello(hello_of(2))[:-1]),
        *(msgpack.packb({str(number): number for number in range(count)}) for count in (9, 10)),
        msgpack.packb(b"nine byte"),
    ],
)
def test_hello_of_other_bytes_is_refused(frame: bytes) -> None:
    with pytest.raises(HandshakeRefused):
        decode_hello(frame)


def test_proof_depends_on_secret_and_both_sides() -> None:
    one, other = encode_hello(hello_of(2)), encode_hello(hello_of(3))

    assert len({proof(b"", one, other), proof(b"s", one, other), proof(b"s", other, one)}) == 3


@pytest.mark.parametrize(("host", "secret"), [("127.0.0.1", b""), ("::1", b""), ("localhost", b""), ("0.0.0.0", b"s")])
def test_binding_to_loopback_or_with_a_secret_is_allowed(host: str, secret: bytes) -> None:
    check_binding(host, (secret,))


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "controller.example"])
def test_binding_elsewhere_without_a_secret_is_refused(host: str) -> None:
    with pytest.raises(InvalidQuorumConfig, match="shared secret"):
        check_binding(host, (b"",))
