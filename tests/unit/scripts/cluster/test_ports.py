from __future__ import annotations

import socket

from quorate.scripts.cluster.ports import LOOPBACK, free_ports, free_stretch


def _listen(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((LOOPBACK, port))
    server.listen()
    return server


def test_port_that_was_given_can_be_listened_on_again_and_again() -> None:
    (port,) = free_ports(1)
    for _ in range(2):
        with _listen(port), socket.create_connection((LOOPBACK, port)):
            pass


def test_ports_that_were_given_go_to_nobody_else() -> None:
    given = set(free_ports(50))
    assert len(given) == 50
    with _listen(free_ports(1)[0]) as server:
        probes = [socket.socket() for _ in range(50)]
        outgoing = []
        try:
            for probe in probes:
                probe.bind((LOOPBACK, 0))
                outgoing.append(socket.create_connection(server.getsockname()))
            others = {each.getsockname()[1] for each in (*probes, *outgoing)}
        finally:
            for each in (*probes, *outgoing):
                each.close()
    assert not given & others


def test_stretch_is_consecutive_and_free() -> None:
    first = free_stretch(8)
    for port in range(first, first + 8):
        _listen(port).close()


def test_stretch_goes_to_nobody_else() -> None:
    given = [port for first in (free_stretch(8), free_stretch(8), free_stretch(3)) for port in range(first, first + 3)]
    assert len({*given, *free_ports(1)}) == 10
