"""Tokens of an issuer over HTTP, at real controllers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import aiohttp

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.found_tokens import FoundTokens
from quorate.controller.identity.issuer.keys import KeysFile
from quorate.controller.identity.issuer.tokens import JwtTokens
from quorate.controller.identity.seals import Seals
from quorate.controller.process.access_parts import AccessParts
from tests.integration.access.test_permissions import CERTIFICATES, SECRET, VOTERS
from tests.integration.http_stage import stage
from tests.unit.controller.identity.issuer.test_tokens import KEYS, RULES, signed

ROOT = frozenset({"User:root"})


def wall_ms() -> float:
    return time.time() * 1000


def access_by(tokens: FoundTokens, node_id: int) -> AccessParts:
    """The access control of a controller that knows these tokens."""
    seals = Seals(lambda: (SECRET,), node_id, VOTERS, wall_ms)
    authentication = IdentityAuthentication(tokens, CERTIFICATES, seals, frozenset())
    return AccessParts(authentication, Authorizer(super_users=ROOT), ROOT, seals)


def bearer(**claims: Any) -> dict[str, str]:
    """The header with a token of the issuer that is right today."""
    return {"Authorization": f"Bearer {signed(**({'exp': time.time() + 60} | claims))}"}


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
