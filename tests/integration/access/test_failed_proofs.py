"""Whoever shows what is wrong is counted, and status says so when there are many: by a metric, and as a fault."""

from __future__ import annotations

import re
import time
from pathlib import Path

import aiohttp
import pytest

from quorate.controller.api import headers
from quorate.controller.api.errors import is_no_access
from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.client.client import ControllerClient
from quorate.controller.engine.failed_proofs import BURST, KINDS
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.identity.login_failures import FAILURES_MAX
from quorate.metadata_log.errors import ApiError
from quorate.scripts.drills.secret_drills import is_let_in
from quorate.testing import cluster
from tests.integration.access.test_permissions import Guarded, bearer, guarded


async def counted(g: Guarded) -> dict[str, float]:
    async with g.stage.session.get(f"{g.stage.urls[0]}/metrics") as answer:
        found = re.findall(r'authentication_failures_total\{shown="(\w+)"\} (\S+)', await answer.text())
    return {kind: float(number) for kind, number in found}


async def test_wrong_proofs_are_counted_by_kind_and_right_ones_are_not(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        nothing = await counted(g)
        assert nothing == dict.fromkeys(KINDS, 0.0), "an alert on their increase sees the first one, too"
        for authorization in ("Bearer rubbish", "Quorate-Seal 1.2.3", "Basic dXNlcg==", "Bearer more"):
            status, _ = await g.ask("nobody", "GET", "/v1/status", more={"Authorization": authorization})
            assert status == 401
        assert (await g.ask("User:root", "GET", "/v1/status"))[0] == 200
        assert (await g.ask("User:ana", "GET", "/v1/status"))[0] == 403
        assert await counted(g) == {**nothing, "bearer": 2.0, "seal": 1.0, "other": 1.0}


async def test_many_of_them_are_remembered_with_where_they_came_from(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        for _ in range(BURST):
            await g.ask("nobody", "GET", "/v1/status", more={"Authorization": "Bearer rubbish"})
        node = g.stage.members[1].node
        told = node.cluster.counters().failed_proofs.sentence(node.controller.scheduler.monotonic_ms())
        assert told is not None
        assert f"{BURST} of them from 127.0.0.1" in told


async def test_who_shows_wrong_tokens_again_and_again_is_told_to_wait_and_a_right_one_is_let_in(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        url = f"{g.stage.urls[0]}/v1/status"
        answers: list[tuple[int, str, str | None]] = []
        for number in range(2 * FAILURES_MAX):
            async with g.plain.get(url, headers={"Authorization": f"Bearer rubbish {number}"}) as answer:
                answers.append((answer.status, (await answer.json())["error"], answer.headers.get("Retry-After")))
                told = {name for name in answer.headers if name.startswith("X-Quorate-")}
                assert told == {headers.NODE}, "a stranger learns nothing of the cluster"
        refused, waiting = (401, "CLUSTER_AUTHORIZATION_FAILED", None), (429, "CLUSTER_AUTHORIZATION_FAILED", "3")
        assert answers[:FAILURES_MAX] == [refused] * FAILURES_MAX
        assert set(answers[FAILURES_MAX:]) <= {refused, waiting}
        assert waiting in answers
        assert (await g.ask("User:root", "GET", "/v1/status"))[0] == 200
        assert (await g.ask("nobody", "GET", "/v1/status"))[0] == 403, "he shows nothing that is wrong"

        client = ControllerClient([g.stage.urls[0]], shared_secret=b"rubbish")
        with pytest.raises(ApiError) as error:
            await client.status()
        await client.close()
        assert is_no_access(error.value), "a follower knows that it is refused"
        async with ControllerClient([g.stage.urls[0]], shared_secret=b"rubbish") as strange:
            seen = {await is_let_in(strange, g.stage.urls[0]) for _ in range(FAILURES_MAX)}
        assert seen == {False}, "drills that rotate secrets ask until the old one is nobody's"


async def test_burst_is_a_fault_that_status_names_whatever_is_done_to_the_wall_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_ahead_ms = 0
    monkeypatch.setattr(LoopScheduler, "wall_ms", lambda _: time.time_ns() // 1_000_000 + set_ahead_ms)
    async with cluster(tls=True) as c, c.client() as admin, aiohttp.ClientSession() as plain:
        assert (await admin.status()).verdict == "healthy"
        trusted = TlsFiles(TlsPaths(ca_files=c.client_certificate("nobody").ca_files)).as_client()
        for number in range(BURST):
            set_ahead_ms = 3_600_000 if number >= BURST // 2 else 0
            sent = {"Authorization": "Bearer rubbish"}
            async with plain.get(f"{c.urls[0]}/v1/status", headers=sent, ssl=trusted) as answer:
                assert answer.status in (401, 429)
        status = await admin.status()
    assert status.verdict == "degraded"
    assert f"{BURST} of them from 127.0.0.1" in status.reasons[0].message


@pytest.mark.parametrize("path", ["/nothing", "/v1/status?x=y", "/v1/topics", "/v1/topics?limit=x", "/livez"])
async def test_who_shows_nothing_is_told_by_whom_he_was_answered_and_nothing_of_the_cluster(
    tmp_path: Path, path: str
) -> None:
    async with guarded(tmp_path) as g:

        async def is_told(who: str) -> bool:
            async with g.plain.get(g.stage.members[1].url + path, headers=bearer(who)) as answer:
                assert headers.NODE in answer.headers
                return headers.CLUSTER in answer.headers

        assert (await is_told("nobody"), await is_told("User:root")) == (False, True)
        await g.allow("User:ANONYMOUS", "DESCRIBE", "CLUSTER", "kafka-cluster")
        assert await is_told("nobody")
