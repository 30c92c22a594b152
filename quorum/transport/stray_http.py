"""Requests of HTTP that come to the quorum's port, where somebody has taken it for the port of the API.

They are answered with a sentence instead of a connection that breaks. Nothing of them is read but the method.
"""

from __future__ import annotations

from typing import Final

#: Read as a frame's length, each is far more than one who has proved nothing may send.
_METHODS: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI")


def is_http(data: bytes) -> bool:
    """Whether the first bytes of a connection begin a request."""
    return data.startswith(_METHODS)


def http_answer(node_id: int, http_url: str) -> bytes:
    """The whole answer. ``http_url``: where this node serves its API; empty where it serves none."""
    where = f"; its HTTP API is at {http_url}" if http_url else ""
    body = f"this is the quorum port of controller {node_id}, for controllers only{where}\n".encode()
    head = (
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
