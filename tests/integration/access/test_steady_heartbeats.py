"""A broker that says what it said before is not identified anew, as long as nobody's token has changed."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.api.content import MSGPACK, pack
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.identity.claims import RequestClaims
from quorate.controller.identity.identity import Caller
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.process.access_parts import AccessParts
from quorate.controller.protocol import BrokerHeartbeatRequest
from tests.integration.access.test_permissions import CERTIFICATES, SUPER_USERS, bearer, token
from tests.integration.http.test_express import HEARTBEAT, Client, in_lane, request
from tests.integration.http_stage import stage

BROKER = "Broker:11"


class CountingAuthentication(IdentityAuthentication):
    """Says how often a broker was identified."""

    identified = 0

    def identify(self, claims: RequestClaims) -> Caller:
        caller = super().identify(claims)
        self.identified += caller.principal == BROKER
        return caller


def beat(epoch: int, offset: int) -> bytes:
    heartbeat = BrokerHeartbeatRequest(broker_id=11, broker_epoch=epoch, current_metadata_offset=offset)
    shown = f"Authorization: {bearer(BROKER)['Authorization']}"
    return request(HEARTBEAT, pack(heartbeat), shown, media=MSGPACK)


async def test_broker_is_identified_with_its_first_heartbeat_and_when_tokens_have_changed(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    now_s = 0.0

    def write(*principals: str) -> None:
        nonlocal now_s
        now_s += 10
        file.write_text("".join(f"{token_line(token(one), one)}\n" for one in principals))

    file.touch(0o600)
    write("User:root", BROKER)
    authentication = CountingAuthentication(TokensFile(file, lambda: now_s), CERTIFICATES, None, frozenset())
    parts = AccessParts(authentication, Authorizer(super_users=SUPER_USERS), SUPER_USERS)
    async with stage(1, access=lambda _: parts) as on:
        on.session.headers.update(bearer("User:root"))
        epoch = await on.register(1, 11)
        others = in_lane(on)
        client = await Client.open(on)

        async def beats(count: int) -> int:
            for number in range(count):
                await client.write(beat(epoch, 1_000 + number))
                assert (await client.read())[0] == 200
            return authentication.identified

        assert await beats(5) == 1
        write("User:root", "User:ana", BROKER)
        assert await beats(5) == 2
        assert in_lane(on) == others + 1

        write("User:root", "User:ana")
        await client.write(beat(epoch, 1_000))
        assert (await client.read())[0] == 401
        client.close()
