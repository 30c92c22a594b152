"""The audit lines of running controllers: of one that was named, and of the others of its quorum."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.audit.audit_pages import AuditPage
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cli.logs.audit_sources import LiveSource, SourceSilent
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.named_addresses import reason_not_to_ask
from quorate.scripts.terminal.places.controllers import find_secret

#: Lines of a page: some milliseconds of the controller that is asked.
_LINES: Final = 1_000
#: One that is stopped is not waited for any longer: it is not asked again.
_PATIENCE_MS: Final = 2_000.0


@contextmanager
def live_sources(url: str, named: Sequence[str], secret_file: Path | None) -> Iterator[list[LiveSource]]:
    """The accounts of the controllers of a quorum; they are asked while the context is open.

    ``named``: base URLs that may be sent the secret.

    Raises:
        NotController: the controller at ``url`` does not say who belongs to its quorum. ApiError: it refuses to.
    """
    with asyncio.Runner() as runner:
        secret = find_secret(secret_file)
        client = client_of([url], secret, absent_ms=_PATIENCE_MS)

        def fetch(of: str, start_offset: int) -> AuditPage:
            reason = reason_not_to_ask(of, named, secret)
            if reason is not None:
                raise SourceSilent(reason)
            return runner.run(_page(client, of, start_offset))

        try:
            voters = runner.run(client.describe_quorum()).voters
            yield [LiveSource(voter.node_id, voter.http, partial(fetch, voter.http)) for voter in voters]
        finally:
            runner.run(client.close())


async def _page(client: ControllerClient, url: str, start_offset: int) -> AuditPage:
    try:
        reply = await client.audit.page(url, start_offset, _LINES, _PATIENCE_MS)
    except (ApiError, NotSent, NoAnswer) as error:
        raise SourceSilent(str(error)) from error
    lines = [AuditLine(**line.model_dump()) for line in reply.lines]
    return AuditPage(lines, reply.next_offset, reply.first_offset)
