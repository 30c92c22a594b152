"""Somebody at a port of Spark's who is none of its processes."""

import socket
import struct
from typing import Final

#: In the answer to who shows no secret, where one is asked for.
SECRET_WANTED: Final = b"Expected SaslMessage"
_DEADLINE_S: Final = 60


def answer_to_a_stranger(address: str) -> bytes:
    """Return what `host:port` says to a request as Spark's own processes send it; anybody may who reaches the port."""
    host, _, port = address.rpartition(":")
    body = b"any request"
    request = struct.pack(">BqI", 3, 1, len(body)) + body
    with socket.create_connection((host, int(port)), timeout=_DEADLINE_S) as connection:
        connection.sendall(struct.pack(">q", 8 + len(request)) + request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))
