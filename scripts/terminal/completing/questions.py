"""A question to the controllers by whoever types, who waits for nobody: the first that answers is right.

It is asked with the standard library alone. The client of commands takes longer to import than anybody waits here, and
looks for the active controller for longer; a standby knows the names as well.
"""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from quorate.controller.api import headers
from quorate.controller.client.targets import UNIX, check_target, check_way
from quorate.controller.identity.secrets import bearer
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.terminal.places.controllers import is_insecure
from quorate.scripts.terminal.places.proofs import Proof

#: For everything that is asked for one word.
ASK_S: Final = 0.3
#: A controller that has not answered by then is asked no less, but the next one too.
_NEXT_S: Final = 0.05
_ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024


class NoNames(QuorateError):
    """Nobody answered in time, or not so."""


def first_answer(urls: Sequence[str], proof: Proof, path: str, parameters: Mapping[str, str | int]) -> Any:
    """The body of the first answer.

    Raises:
        NoNames: there is none. ApiError, LimitExceeded: nobody can be asked so. SecretInPlaintext.
    """
    check_target(path, parameters)
    if proof.shown is not None and not is_insecure():
        for url in urls:
            check_way(url)
    target = f"{path}?{urlencode(parameters)}" if parameters else path
    until = time.monotonic() + ASK_S
    said: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left, waited_for = [*urls], 0
    while (rest := until - time.monotonic()) > 0 and (left or waited_for):
        if left:
            # A host name may be looked up for minutes: the process ends without waiting for these.
            threading.Thread(target=_ask, args=(left.pop(0), proof, target, said), daemon=True).start()
            waited_for += 1
        with suppress(queue.Empty):
            answer = said.get(timeout=min(rest, _NEXT_S) if left else rest)
            waited_for -= 1
            if answer is not None:
                return answer
    raise NoNames("no controller answered in time")


def _ask(url: str, proof: Proof, target: str, said: queue.SimpleQueue[Any]) -> None:
    """Put the body of a controller's answer into a queue; None: there is none."""
    try:
        said.put(_answer(url, proof, target))
    except (OSError, HTTPException, QuorateError, ValueError, RecursionError):
        said.put(None)


def _answer(url: str, proof: Proof, target: str) -> Any:
    sent = {headers.TIMEOUT_MS: str(int(ASK_S * 1000))}
    if proof.shown is not None:
        sent["Authorization"] = bearer(proof.shown)
    with closing(_connection(url, proof)) as connection:
        connection.request("GET", target, headers=sent)
        answer = connection.getresponse()
        body = answer.read(_ANSWER_BYTES_MAX)
        is_controller = answer.status == 200 and headers.NODE in answer.headers
    return json.loads(body) if is_controller else None


def _connection(url: str, proof: Proof) -> HTTPConnection:
    path = url.removeprefix(UNIX) if url.startswith(UNIX) else proof.sockets.get(url)
    if path is not None:
        return _SocketConnection(path)
    parts = urlsplit(url)
    assert parts.hostname is not None, "it is a base URL"
    if parts.scheme == "http":
        return HTTPConnection(parts.hostname, parts.port, timeout=ASK_S)
    context = ssl.create_default_context() if proof.tls is None else proof.tls()
    return HTTPSConnection(parts.hostname, parts.port, timeout=ASK_S, context=context)


class _SocketConnection(HTTPConnection):
    """To the controller at a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ASK_S)
        self._path = path

    def connect(self) -> None:
        """As of ``HTTPConnection``."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ASK_S)
        self.sock.connect(self._path)
