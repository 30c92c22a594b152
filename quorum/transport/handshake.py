"""The first two frames of a connection: who is there, and proof of the shared secret.

Each side sends a hello with a nonce, then an HMAC over the other's nonce and both hellos. So nobody without the
secret is listened to, and a recorded handshake is of no use. Whoever dials proves first: one who does not know the
secret is given no proof to guess it by. Without a secret the key is empty, and nodes bind to loopback only.
While one secret takes the place of another both are believed, and the answer proves the one that whoever dialled has.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.loopback import is_loopback
from quorate.quorum.config import InvalidQuorumConfig, QuorumConfig
from quorate.quorum.errors import HandshakeRefused, Superseded
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.versions import OLDEST_VERSION, common_version

NONCE_BYTES: Final = 16
#: Gives the secrets that are believed at the moment, at least one; the first is the one that this node proves.
Secrets = Callable[[], tuple[bytes, ...]]
#: Types of a hello's fields. What a newer one has behind them is left alone.
_FIELD_TYPES: Final = [int, int, str, int, bytes, int, int, str, bool, bytes]
#: Of a hello before version 4, which named one version and knew no other.
_FIELDS_BEFORE: Final = 9


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a connection: a node's account of itself."""

    #: The versions of messages that the node speaks, from which to which.
    oldest_version: int
    newest_version: int
    cluster_id: str
    node_id: int
    directory_id: Uuid
    generation: int
    voter_set_crc: int
    channel: Channel
    #: False while the node recovers from a loss of its memory.
    is_voter: bool
    nonce: bytes


def own_hello(config: QuorumConfig, channel: Channel, *, is_voter: bool, nonce: bytes) -> Hello:
    """The hello of this node."""
    return Hello(
        OLDEST_VERSION,
        config.newest_version,
        config.cluster_id,
        config.node_id,
        config.directory_id,
        config.generation,
        config.voter_set_crc,
        channel,
        is_voter,
        nonce,
    )


def encode_hello(hello: Hello) -> bytes:
    """The hello's frame."""
    packed: bytes = msgpack.packb(
        [
            hello.oldest_version,
            hello.newest_version,
            hello.cluster_id,
            hello.node_id,
            hello.directory_id,
            hello.generation,
            hello.voter_set_crc,
            hello.channel.value,
            hello.is_voter,
            hello.nonce,
        ]
    )
    return packed


def decode_hello(frame: bytes) -> Hello:
    """The hello in a frame.

    Raises:
        HandshakeRefused: it is none.
    """
    try:
        fields: Any = msgpack.unpackb(frame)
        if not isinstance(fields, list):
            raise HandshakeRefused(f"no hello: {type(fields).__name__} where a list of its fields is due")
        if len(fields) == _FIELDS_BEFORE and type(fields[0]) is int:
            raise HandshakeRefused(
                f"it speaks version {fields[0]} alone, this node {OLDEST_VERSION} and above: stop all controllers, "
                "and start them with one release"
            )
        fields = fields[: len(_FIELD_TYPES)]
        if [type(field) for field in fields] != _FIELD_TYPES or len(fields[-1]) != NONCE_BYTES:
            raise HandshakeRefused(f"{len(_FIELD_TYPES)} fields of a hello are due")
        oldest, newest, cluster, node, directory, generation, voters, channel, is_voter, nonce = fields
        return Hello(oldest, newest, cluster, node, directory, generation, voters, Channel(channel), is_voter, nonce)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise HandshakeRefused(f"no hello: {error}") from error


def check_hello(config: QuorumConfig, hello: Hello, expected_node: int | None) -> None:
    """Whether this node may talk to the sender, in whatever version. ``expected_node``: whom it dialled, if it did.

    Raises:
        HandshakeRefused: says what differs.
    """
    if hello.cluster_id != config.cluster_id:
        raise HandshakeRefused(f"cluster {hello.cluster_id!r}, this node belongs to {config.cluster_id!r}")
    if hello.node_id not in config.peer_ids:
        raise HandshakeRefused(f"node {hello.node_id} is no other voter of this cluster")
    if expected_node is not None and hello.node_id != expected_node:
        raise HandshakeRefused(f"node {hello.node_id} answers where node {expected_node} is configured")
    if hello.generation == config.generation and hello.voter_set_crc != config.voter_set_crc:
        raise HandshakeRefused(f"node {hello.node_id} is configured with another set of voters")


def agreed_version(config: QuorumConfig, hello: Hello) -> int:
    """The version of messages in which this node talks to the sender.

    Only after the own hello: by it the other one, too, can say in its log which versions each knows.

    Raises:
        HandshakeRefused: there is none.
    """
    version = common_version(config.newest_version, hello.oldest_version, hello.newest_version)
    if version is None:
        raise HandshakeRefused(
            f"node {hello.node_id} speaks versions {hello.oldest_version} to {hello.newest_version}, this node "
            f"{OLDEST_VERSION} to {config.newest_version}: upgrade by way of a release that knows one of either"
        )
    return version


def check_generation(config: QuorumConfig, hello: Hello) -> None:
    """Whether the sender, who has proved who it is, belongs to the quorum as it was founded last.

    Only after the proof, on either side: the older one must be able to believe that there is a newer generation.

    Raises:
        HandshakeRefused: the sender is of an older generation. Superseded: this node is.
    """
    if hello.generation > config.generation:
        raise Superseded(config.generation, hello.generation, hello.node_id)
    if hello.generation < config.generation:
        raise HandshakeRefused(
            f"node {hello.node_id} is of generation {hello.generation}: this quorum was rebuilt as generation"
            f" {config.generation}, and that node must be seeded again"
        )


def no_secret() -> tuple[bytes, ...]:
    """``Secrets`` of nodes that share none."""
    return (b"",)


def proof(secret: bytes, sender: bytes, receiver: bytes) -> bytes:
    """The proof that the sender knows the secret; both arguments are whole hello frames, the receiver's with the nonce
    to answer.
    """
    return hmac.new(secret, receiver + sender, hashlib.sha256).digest()


def check_binding(host: str, secrets: Iterable[bytes]) -> None:
    """Refuse to listen on anything but loopback without a secret, or where none may prove just as well.

    Raises:
        InvalidQuorumConfig: names the address.
    """
    if not all(secrets) and not is_loopback(host):
        raise InvalidQuorumConfig(f"listening on {host} needs a shared secret; without one only loopback is allowed")
