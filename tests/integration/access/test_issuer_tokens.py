"""Tokens of an issuer over HTTP, at real controllers, which fetch its keys from a real address."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.found_tokens import FoundTokens
from quorate.controller.identity.issuer import keys as issuer_keys
from quorate.controller.identity.issuer.keys import KeysAddress, KeysFile
from quorate.controller.identity.issuer.tokens import JwtTokens
from quorate.controller.identity.seals import Seals
from quorate.controller.process.access_parts import AccessParts
from tests.integration.access.test_permissions import CERTIFICATES, SECRET, VOTERS
from tests.integration.http_stage import stage
from tests.unit.controller.identity.issuer.test_keys import issuer
from tests.unit.controller.identity.issuer.test_tokens import KEYS, RSA, RULES, public, signed
from tests.waiting import eventually

ROOT = frozenset({"User:root"})


def wall_ms() -> float:
    return time.time() * 1000


def access_by(tokens: FoundTokens, node_id: int) -> AccessParts:
    """The access control of a controller that knows these tokens."""
    seals = Seals(lambda: (SECRET,), node_id, VOTERS, wall_ms)
    authentication = IdentityAuthentication(tokens, CERTIFICATES, seals, frozenset())
    return AccessParts(authentication, Authorizer(super_users=ROOT), ROOT, seals)


def bearer(key: Any = RSA, kid: str = "r", **claims: Any) -> dict[str, str]:
    """The header with a token of the issuer that is right today."""
    return {"Authorization": f"Bearer {signed(key, kid=kid, **({'exp': time.time() + 60} | claims))}"}


async def test_delegation_token_ends_with_the_issuers_token_at_a_standby_too(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(json.dumps({"keys": KEYS}))
    tokens = JwtTokens(RULES, KeysFile(keys), wall_ms)
    async with stage(2, access=lambda node_id: access_by(tokens, node_id)) as s, aiohttp.ClientSession() as plain:
        ends_s = int(time.time()) + 60
        for url in s.urls:
            path = f"{url}/v1/delegation-tokens"
            async with plain.post(path, json={}, headers=bearer(exp=ends_s)) as answer:
                assert answer.status == 200
                made = await answer.json()
            assert made["max_timestamp_ms"] == made["expiry_timestamp_ms"] == ends_s * 1000 + RULES.clock_skew_ms - 1


async def test_issuer_exchanges_its_key_while_requests_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "_ASK_S_MIN", 0.0)
    monkeypatch.setattr(issuer_keys, "_ASK_S_MAX", 0.05)
    new = rsa.generate_private_key(65_537, 2_048)
    old_key, new_key = public(RSA, "r"), public(new, "n")
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as plain, asyncio.TaskGroup() as tasks:
        told.answer = json.dumps({"keys": [old_key]}).encode()
        sources = {id_: KeysAddress(url, ca_file, 60.0) for id_ in (1, 2)}
        asking = [tasks.create_task(source.run(lambda: None)) for source in sources.values()]
        async with stage(2, access=lambda id_: access_by(JwtTokens(RULES, sources[id_], wall_ms), id_)) as s:

            async def answers(sent: dict[str, str]) -> set[int]:
                """The statuses at both controllers."""
                found = set()
                for address in s.urls:
                    async with plain.get(f"{address}/v1/topics", headers=sent) as answer:
                        found.add(answer.status)
                return found

            async def keep_asking(sent: dict[str, str]) -> None:
                while True:
                    assert await answers(sent) == {200}

            by_old, by_new = bearer(), bearer(new, "n")

            async def is_old_known() -> bool:
                return await answers(by_old) == {200}

            async def is_new_known() -> bool:
                return await answers(by_new) == {200}

            async def is_old_gone() -> bool:
                return await answers(by_old) == {401}

            await eventually(is_old_known, "the keys are there")
            assert await answers(by_new) == {401}
            going_on = tasks.create_task(keep_asking(by_old))
            told.answer = json.dumps({"keys": [old_key, new_key]}).encode()
            await eventually(is_new_known, "the new key is there, and the old one all the while")
            going_on.cancel()
            with suppress(asyncio.CancelledError):
                await going_on
            going_on = tasks.create_task(keep_asking(by_new))
            told.answer = json.dumps({"keys": [new_key]}).encode()
            await eventually(is_old_gone, "the old key is gone, and the new one goes on")
            for task in (going_on, *asking):
                task.cancel()
