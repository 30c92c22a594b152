"""The secret goes to addresses that a command's user named: not to others that a server tells of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.scripts.cli.logs.joined_log import log_of_quorum
from quorate.scripts.cli.logs.live_audit import live_sources
from tests.integration.http_stage import Stage, stage

SECRET = b"s" * 32


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_bytes(SECRET)
    return file


def asked(s: Stage) -> list[int]:
    """The controllers that have answered anything over HTTP."""
    return [id_ for id_, member in s.members.items() if member.node.cluster.counters().http_answers]


async def test_history_asks_nobody_with_the_secret_who_was_not_named(secret_file: Path) -> None:
    async with stage(shared_secret=SECRET) as s:
        url = s.members[1].url

        def ask() -> dict[int | None, str]:
            with live_sources(url, [url], secret_file) as sources:
                for source in sources:
                    source.within(0, 1)
                return {source.node_id: source.silence for source in sources if source.silence}

        def missing(*urls: str) -> list[str]:
            with log_of_quorum(urls, secret_file) as log:
                return log.missing

        said = await asyncio.to_thread(ask)
        unread = await asyncio.to_thread(missing, url)
        assert said.keys() == {2, 3}
        assert all("was not named, and the secret is sent to no address" in reason for reason in said.values())
        assert [reason.partition(" ")[0] for reason in unread] == [s.members[2].url, s.members[3].url]
        assert asked(s) == [1]
        assert await asyncio.to_thread(missing, *(member.url for member in s.members.values())) == []
        assert asked(s) == [1, 2, 3]
