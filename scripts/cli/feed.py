"""`quorate brokers feed`: how the readers of the metadata feed are served, asked of every controller.

A session belongs to the controller that is read, and brokers read any: only all controllers together know all readers.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Final

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.feed_replies import FeedSessionReply, FeedSessionsReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import ago, or_dash, show
from quorate.scripts.terminal.tables import columns

#: Controllers are asked at the same time; one that is stopped is not waited for any longer.
_PATIENCE_MS: Final = 2_000
_TITLES: Final = (
    "BROKER", "HOSTED", "CONTROLLER", "LAG(RECORDS)", "LAG(BYTES)", "UNSENT(BYTES)", "SENT(BYTES)", "QUEUE",
    "CUT-OFF", "LAST-SEEN", "ADDRESS",
)  # fmt: skip


class SilentController(BaseModel):
    """A controller that did not answer."""

    model_config = ConfigDict(frozen=True)

    url: str
    reason: str


class FeedReaders(BaseModel):
    """The readers of all controllers' feeds, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    controllers: list[FeedSessionsReply]
    silent: list[SilentController]


def feed(as_json: AsJson = False, controllers: Controllers = None, secret_file: SecretFile = None) -> None:
    """Show who reads the metadata feed of which controller, and how far behind each reader is.

    A process that plays several brokers has one session, under the smallest id; readers without a name are counted
    together. QUEUE is the average time from a commit until the reader's connection had taken it. All of it is about
    now: nobody writes it down, so there is no --at.

    Example: quorate brokers feed
    """
    readers = ask(controllers, secret_file, _readers)
    show(readers, columns([_TITLES, *_rows(readers)]), as_json=as_json)
    for silent in readers.silent:
        sys.stderr.write(f"quorate: {silent.url} does not answer: {silent.reason}\n")
    if not readers.controllers:
        raise typer.Exit(exit_codes.UNREACHABLE)


async def _readers(client: ControllerClient) -> FeedReaders:
    urls = [voter.http for voter in (await client.describe_quorum()).voters]
    answers = await asyncio.gather(*(_ask(client, url) for url in urls))
    return FeedReaders(
        controllers=[answer for answer in answers if isinstance(answer, FeedSessionsReply)],
        silent=[answer for answer in answers if isinstance(answer, SilentController)],
    )


async def _ask(client: ControllerClient, url: str) -> FeedSessionsReply | SilentController:
    try:
        return await client.feed_sessions(url, _PATIENCE_MS)
    except (ApiError, NotSent, NoAnswer) as error:
        return SilentController(url=url, reason=str(error))


def _rows(readers: FeedReaders) -> Iterator[tuple[str, ...]]:
    for reply in readers.controllers:
        for session in reply.sessions:
            yield _row(str(session.broker_id), reply.observed_by, session)
        if reply.unnamed.in_flight or reply.unnamed.sent_chunks:
            yield _row("others", reply.observed_by, reply.unnamed)


def _row(reader: str, controller: int, session: FeedSessionReply) -> tuple[str, ...]:
    queue = session.queue_ms_average
    return (
        reader,
        str(session.hosted_brokers),
        str(controller),
        or_dash(session.lag_records),
        or_dash(session.lag_bytes),
        str(session.unsent_bytes),
        str(session.sent_bytes),
        "-" if queue is None else f"{queue:.1f} ms",
        str(session.cut_off),
        ago(session.last_seen_ms_ago),
        session.remote_address or "-",
    )
