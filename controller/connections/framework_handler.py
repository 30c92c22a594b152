"""The web framework's reader of one connection: what is no request to it is refused in our form, as everything is."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import http_exceptions, web

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.connections.framework_connection import FrameworkConnection

#: Of the request's line, and of each header.
HEAD_LINE_BYTES_MAX: Final = 8_190
#: For how long the rest of a body that nobody wants is taken and thrown away, so that the answer is read before the
#: connection is closed.
_LINGERING_S: Final = 1.0
#: Of what the framework says of a head.
_SAID_CHARS: Final = 200


class FrameworkHandler(web.RequestHandler):
    """Answers one connection's requests with an application, behind a ``FrameworkConnection``."""

    def __init__(self, server: web.Server, idle_s: float) -> None:
        """``server``: the application's. ``idle_s``: a connection on which nothing is asked for so long is closed."""
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=idle_s,
            lingering_time=_LINGERING_S,
            access_log=None,  # type: ignore[arg-type]  # none is written
            # It would inflate what anybody sends, a thousand times its size, before it is known who sends it.
            auto_decompress=False,
            max_line_size=HEAD_LINE_BYTES_MAX,
            max_field_size=HEAD_LINE_BYTES_MAX,
        )

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Called by the framework: send an answer. Whoever asked has taken it then, but for what the kernel holds."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            if (connection := self._connection) is not None:
                connection.end()

    @property
    def _connection(self) -> FrameworkConnection | None:
        connection = None if self.transport is None else self.transport.get_protocol()
        return connection if isinstance(connection, FrameworkConnection) else None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Called by the framework: it cannot read a request, or nobody has caught an error.

        Raises:
            ConnectionError: the client has gone, or it was told what is wrong, and the connection is closed.
        """
        if isinstance(exc, ConnectionError):
            raise exc  # the client has gone: there is nobody to answer, and nothing to tell
        connection = self._connection
        if not isinstance(exc, http_exceptions.HttpProcessingError) or connection is None:
            return super().handle_error(request, status, exc, message)
        connection.dismiss(_refusal(exc))
        raise ConnectionAbortedError("it was told why, and is closed")


def _refusal(error: http_exceptions.HttpProcessingError) -> HttpRefusal:
    if isinstance(error, http_exceptions.LineTooLong):
        return HttpRefusal(431, f"a line of a request's head has at most {HEAD_LINE_BYTES_MAX} bytes")
    said = error.message.partition("\n")[0][:_SAID_CHARS].rstrip(": ")
    return HttpRefusal(400, f"this is no request of HTTP/1.1: {said}")
