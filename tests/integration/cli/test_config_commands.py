"""`quorate configs` and `quorate features` against controllers behind real HTTP servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import command, here
from tests.integration.http_servers import closed_port
from tests.integration.http_stage import stage


@asynccontextmanager
async def cluster() -> AsyncIterator[str]:
    async with stage() as s:
        await s.register(1, 11)
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "orders"}]})
        yield s.urls[1]


async def test_configs_are_changed_and_shown() -> None:
    async with cluster() as url:
        change = ("--set", "retention.ms=7", "--append", "cleanup.policy=compact", "--delete", "segment.ms")
        ended = await command(url, "configs", "alter", "topic/orders", *change)
        assert ended == (exit_codes.DONE, "topic/orders was changed.\n", "")
        ended = await command(url, "configs", "describe", "topic/orders")
        shown = [line.split() for line in ended.out.splitlines()]
        assert shown[0] == ["cleanup.policy", "delete,compact", "dynamic", "topic", "(default:", "delete)"]
        assert [cells[0] for cells in shown] == ["cleanup.policy", "min.insync.replicas", "retention.ms"]
        ended = await command(url, "configs", "replace", "topic/orders", "--set", "flush.ms=1", "--dry-run")
        assert ended.out == "topic/orders can be changed.\n"
        ended = await command(url, "configs", "replace", "topic/orders", "--set", "flush.ms=1")
        assert ended.code == exit_codes.DONE
        ended = await command(url, "configs", "describe", "topic/orders", "--json")
        own = [c["name"] for c in json.loads(ended.out)["configs"] if c["source"] == "DYNAMIC_TOPIC_CONFIG"]
        assert own == ["flush.ms"]


async def test_secret_is_hidden() -> None:
    async with cluster() as url:
        await here(url, "configs", "alter", "broker/11", "--set", "ssl.key.password=hush")
        shown = await here(url, "configs", "describe", "broker/11")
        assert "(hidden)" in shown.out
        assert "hush" not in shown.out
        described = await here(url, "configs", "describe", "broker/11", "--json")
        assert "hush" not in described.out


async def test_features_are_shown_lowered_and_raised() -> None:
    async with cluster() as url:
        ended = await here(url, "features", "describe")
        assert ["eligible.leader.replicas.version", "1", "0-1"] in [line.split() for line in ended.out.splitlines()]
        off = ("features", "downgrade", "eligible.leader.replicas.version=0")
        ended = await here(url, *off, "--dry-run")
        assert ended.out == "eligible.leader.replicas.version can go from 1 to 0.\n"
        ended = await here(url, *off)
        assert ended.out == "eligible.leader.replicas.version went from 1 to 0.\n"
        ended = await here(url, "features", "upgrade", "eligible.leader.replicas.version=1", "share.version=1")
        assert ended.out.splitlines() == [
            "eligible.leader.replicas.version went from 0 to 1.",
            "share.version went from 1 to 1.",
        ]


async def test_refused_downgrade_shows_what_would_be_lost() -> None:
    async with cluster() as url:
        ended = await here(url, "features", "downgrade", "metadata.version=16", "--dry-run")
        assert ended.code == exit_codes.REFUSED
        assert (
            ended.out == "  would be lost from level 16 down: 1 partitions whose replicas' log directories are known\n"
        )
        assert ended.err.startswith("quorate: Unsupported metadata.version downgrade from 30 to 16. Refusing")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("configs", "describe", "orders"), exit_codes.USAGE, "names no resource"),
        (("configs", "describe", "lake/x"), exit_codes.USAGE, "names no resource"),
        (("configs", "describe", "topic/none"), exit_codes.REFUSED, "The topic 'none' does not exist."),
        (("configs", "alter", "topic/orders"), exit_codes.USAGE, "say what is to change"),
        (("configs", "alter", "topic/orders", "--set", "retention.ms"), exit_codes.USAGE, "NAME=VALUE"),
        (("configs", "alter", "topic/orders", "--set", "nope=1"), exit_codes.REFUSED, "Unknown topic config name"),
        (("configs", "replace", "topic/orders", "--set", "segment.ms=0"), exit_codes.REFUSED, "must be at least 1"),
        (("features", "upgrade", "nope=1"), exit_codes.REFUSED, "does not support this feature"),
        (("features", "upgrade", "share.version"), exit_codes.USAGE, "is not FEATURE=LEVEL"),
        (("features", "upgrade", "share.version=40000"), exit_codes.USAGE, "is not FEATURE=LEVEL"),
        (("features", "downgrade", "share.version=-1"), exit_codes.USAGE, "is not FEATURE=LEVEL"),
    ],
)  # fmt: skip
async def test_bad_command_ends_with_a_sentence(arguments: tuple[str, ...], code: int, says: str) -> None:
    async with cluster() as url:
        ended = await here(url, *arguments)
        assert ended.code == code
        assert says in " ".join(ended.err.replace("│", " ").split())
        assert "Traceback" not in ended.err


async def test_slip_in_a_name_is_pointed_out_whether_it_is_taken_or_not() -> None:
    """A broker may have configs of its plug-ins: what nobody knows is taken, too."""
    async with cluster() as url:
        hint = "quorate: no topic config is known as segment.mss: did you mean segment.ms?\n"
        for verb in ("alter", "replace"):
            refused = await here(url, "configs", verb, "topic/orders", "--set", "segment.mss=1")
            assert (refused.code, refused.err.startswith(hint)) == (exit_codes.REFUSED, True)
        taken = await here(url, "configs", "alter", "broker/", "--set", "log.retention.hourss=1")
        assert (taken.code, taken.out) == (exit_codes.DONE, "broker/ was changed.\n")
        assert taken.err.endswith("known as log.retention.hourss: did you mean log.retention.hours?\n")
        mended = await here(url, "configs", "alter", "broker/", "--delete", "log.retention.hourss")
        assert mended == (exit_codes.DONE, "broker/ was changed.\n", "")


async def test_nobody_to_ask_has_an_exit_code_of_its_own() -> None:
    """Asked side by side: each tries for as long as an election may take."""
    asked = (("features", "describe"), ("acls", "list"), ("tokens", "list"))
    async with closed_port() as gone:
        for ended in await asyncio.gather(*(command(gone, *one) for one in asked)):
            assert ended.code == exit_codes.UNREACHABLE
            assert ended.err.startswith("quorate: ")
