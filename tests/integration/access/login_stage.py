"""Three controllers at which users log in, and whoever speaks to them: by a client, or header by header."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.login import PasswordLogin
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.found_tokens import AllTokens
from quorate.controller.identity.logins import Logins
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_parts import AccessParts
from quorate.controller.protocol.scram import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.http_fields import HttpStep, authentication_info, http_step
from quorate.controller.scram.keys import HASHES, salted_password
from tests.integration.http_stage import CLUSTER_ID, TOKEN_SECRET, Stage, stage

MECHANISM = "SCRAM-SHA-256"
SECRET = b"the secret of the quorum, 32 characters"
VOTERS = frozenset({1, 2, 3})
ROOT_TOKEN = "r" * 43
LIFETIME_MS = 900_000


class WallClock:
    """Milliseconds since 1970 that a test moves."""

    now_ms = 1_700_000_000_000.0

    def __call__(self) -> float:
        return self.now_ms


class Told(NamedTuple):
    """An answer to a part of a login."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


class LoginServers:
    """The controllers, whose root has a token in a file."""

    def __init__(self, on: Stage, plain: aiohttp.ClientSession, clock: WallClock) -> None:
        """``plain``: sends nothing that it is not told to. ``clock``: of all controllers."""
        self.stage = on
        self.plain = plain
        self.clock = clock
        self._numbers = count()

    @property
    def urls(self) -> list[str]:
        """Of all controllers."""
        return self.stage.urls

    async def set_user(self, name: str, password: str, mechanism: str = MECHANISM) -> None:
        """Give a user a password, as `quorate users set` does."""
        salt = b"a salt of its own"
        salted = salted_password(mechanism, password, salt, 4096)
        made = ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=4096, salt=salt, salted_password=salted
        )
        await self._alter(AlterUserScramCredentialsRequest(upsertions=[made]))

    async def remove_user(self, name: str, mechanism: str = MECHANISM) -> None:
        """Take it away."""
        gone = ScramCredentialDeletion(name=name, mechanism=mechanism)
        await self._alter(AlterUserScramCredentialsRequest(deletions=[gone]))

    async def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        async with ControllerClient(self.urls, shared_secret=ROOT_TOKEN.encode()) as root:
            reply = await root.access.alter_user_scram_credentials(request)
        assert [result.error_code for result in reply.results] == [0]

    def client(self, user: str, password: str, mechanism: str = MECHANISM) -> ControllerClient:
        """A client that logs in."""
        return ControllerClient(self.urls, login=PasswordLogin(user, password, mechanism))

    async def say(self, authorization: str | None, asked: int = 1, path: str = "/v1/login") -> Told:
        """One request with this header."""
        sent = {} if authorization is None else {"Authorization": authorization}
        async with self.plain.get(self.stage.members[asked].url + path, headers=sent) as answer:
            return Told(answer.status, answer.headers, await answer.json())

    async def begin(self, user: str, password: str, mechanism: str = MECHANISM) -> tuple[ScramClient, HttpStep]:
        """The client of an exchange, and its last message."""
        client = ScramClient(mechanism, user, password, f"client{next(self._numbers)}")
        told = await self.say(HttpStep(mechanism, "", client.first()).text)
        assert told.status == 401, told
        answer = http_step(told.headers["WWW-Authenticate"])
        return client, HttpStep(mechanism, answer.sid, client.last(answer.message))

    async def log_in(self, user: str, password: str) -> str:
        """The token of a whole login, at two controllers."""
        client, last = await self.begin(user, password)
        told = await self.say(last.text, asked=2)
        assert told.status == 200, told
        client.check(authentication_info(told.headers["Authentication-Info"]).message)
        return str(told.body["token"])


def access_of(file: Path, node_id: int, clock: WallClock) -> AccessParts:
    """The access control of a controller with this file of tokens, at which users log in."""
    seals = Seals(lambda: (SECRET,), node_id, VOTERS, clock)
    numbers = count(node_id * 1_000_000)
    secrets, nonces = (lambda: (SECRET,), lambda: (TOKEN_SECRET,)), lambda: f"server{next(numbers)}"
    logins = Logins(*secrets, tuple(HASHES), LIFETIME_MS, clock, nonces, clock)
    tokens = AllTokens((TokensFile(file), logins.tokens))
    certificates = CertificateIdentities(CLUSTER_ID, PrincipalMapping())
    authentication = IdentityAuthentication(tokens, certificates, seals, frozenset())
    super_users = frozenset({"User:root"})
    return AccessParts(authentication, Authorizer(super_users=super_users), super_users, seals, logins)


@asynccontextmanager
async def login_servers(tmp_path: Path) -> AsyncIterator[LoginServers]:
    """Three controllers; ana, whose password is pencil, may create topics."""
    file, clock = tmp_path / "tokens", WallClock()
    file.touch(0o600)
    file.write_text(f"{token_line(ROOT_TOKEN, 'User:root')}\n")
    async with stage(3, access=lambda id_: access_of(file, id_, clock)) as s, aiohttp.ClientSession() as plain:
        s.session.headers["Authorization"] = f"Bearer {ROOT_TOKEN}"
        await s.register(1, 11)
        servers = LoginServers(s, plain, clock)
        await servers.set_user("ana", "pencil")
        allowed = {"resource_type": "TOPIC", "resource_name": "*", "principal": "User:ana", "operation": "ALL"}
        body = {"creations": [{**allowed, "permission_type": "ALLOW"}]}
        status, reply, _ = await s.ask(1, "POST", "/v1/acls", body)
        assert status == 200, reply
        yield servers
