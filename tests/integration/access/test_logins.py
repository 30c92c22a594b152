"""Logins over real sockets: RFC 7804 in its shape, and what is not a whole, right and fresh exchange is no login."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.headers import NODE
from quorate.controller.client import login
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.login import InvalidLogin, PasswordLogin
from quorate.controller.client.targets import SecretInPlaintext
from quorate.controller.identity.login_failures import FAILURES_MAX, FORGOTTEN_MS
from quorate.controller.identity.logins import EXCHANGE_MS, Logins
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.controller.scram.http_fields import HttpStep, authentication_info, http_step
from quorate.controller.scram.messages import ServerFirst, client_first
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController
from tests.integration.access.login_stage import LIFETIME_MS, MECHANISM, SECRET, login_servers
from tests.integration.http_servers import server
from tests.integration.http_stage import stage

OFFERED = 'SCRAM-SHA-256 realm="quorate", SCRAM-SHA-512 realm="quorate", Bearer realm="quorate"'


LOGIN = PasswordLogin("ana", "pencil")


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


async def names_seen(client: ControllerClient) -> list[str]:
    return [topic.name for topic in (await client.list_topics()).topics]


async def test_exchange_has_the_form_of_the_rfc_and_its_token_is_the_user_at_every_controller(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        asked = await s.say(None)
        assert (asked.status, asked.headers["WWW-Authenticate"]) == (401, OFFERED)
        client, last = await s.begin("ana", "pencil")
        told = await s.say(last.text, asked=2)
        assert (told.status, told.headers["Cache-Control"]) == (200, "no-store")
        client.check(authentication_info(told.headers["Authentication-Info"]).message)
        assert {key: told.body[key] for key in ("principal", "lifetime_ms", "expires_at_ms")} == {
            "principal": "User:ana",
            "lifetime_ms": LIFETIME_MS,
            "expires_at_ms": s.clock.now_ms + LIFETIME_MS,
        }
        for controller in (1, 2, 3):
            assert (await s.say(f"Bearer {told.body['token']}", controller, "/v1/topics")).status == 200
            assert (await s.say(f"Bearer {told.body['token']}", controller, "/v1/acls")).status == 403
        assert (await s.say("Bearer qlogin1.x", path="/v1/topics")).headers[
            "WWW-Authenticate"
        ] == 'Bearer realm="quorate"'


async def test_client_logs_in_renews_and_changes_what_its_user_may(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, s.client("ana", "pencil") as client:
        await client.create_topics(topics("a"))
        s.clock.now_ms += LIFETIME_MS
        await client.create_topics(topics("b"))
        assert await names_seen(client) == ["a", "b"]
        with pytest.raises(ApiError, match="User:ana needs"):
            await client.describe_quorum()


async def test_wrong_password_unknown_user_and_other_mechanism_are_told_the_same(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        await s.set_user("ben", "pen", "SCRAM-SHA-512")
        answers = []
        for user, password in (("ana", "wrong"), ("nobody", "pencil"), ("ben", "pen")):
            _, last = await s.begin(user, password)
            told = await s.say(last.text)
            told.body.pop("request_id")
            answers.append((told.status, told.headers["WWW-Authenticate"], told.body))
            async with s.client(user, password) as client:
                with pytest.raises(HttpRefusal, match=f"{user} cannot log in by SCRAM-SHA-256") as refused:
                    await client.create_topics(topics("a"))
                assert refused.value.status == 401
        assert answers == [answers[0]] * 3
        assert answers[0][:2] == (401, OFFERED)
        async with s.client("ben", "pen", "SCRAM-SHA-512") as client:
            assert await names_seen(client) == []


@pytest.mark.parametrize("user", ["ana", "nobody"])
async def test_refusal_of_a_login_names_the_user_that_was_said(tmp_path: Path, user: str) -> None:
    async with login_servers(tmp_path) as s:
        log = s.stage.members[1].node.refusals._lines = RefusalLog(tmp_path)
        _, last = await s.begin(user, "wrong")
        await s.say(last.text)
        (line,) = log.newest(10)
        said = f"the login failed: as {user!r}: the proof is not that of the user's password"
        assert (line.principal, line.message) == (None, said)


async def test_what_is_no_fresh_exchange_of_this_quorum_is_refused(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        await s.set_user("ben", "pencil")
        (_, last), (_, other), (_, of_ben) = [await s.begin(name, "pencil") for name in ("ana", "ana", "ben")]
        wrong_nonce = last._replace(message=last.message.replace(b"r=client", b"r=cliant"))
        for step in (last._replace(sid=other.sid), last._replace(sid=of_ben.sid), wrong_nonce):
            assert (await s.say(step.text)).status == 401
        assert (await s.say(last.text)).status == 200
        assert (await s.say(last.text)).status == 401, "it counts once"
        s.clock.now_ms += EXCHANGE_MS + 1
        assert (await s.say(other.text)).status == 401, "its time is over"


async def test_change_of_the_password_ends_logins_and_exchanges_at_once(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, s.client("ana", "pencil") as client:
        await client.create_topics(topics("a"))
        token, (_, last) = await s.log_in("ana", "pencil"), await s.begin("ana", "pencil")
        await s.set_user("ana", "pen")
        assert (await s.say(last.text)).status == 401
        for controller in (1, 2, 3):
            assert (await s.say(f"Bearer {token}", controller, "/v1/topics")).status == 401
        with pytest.raises(HttpRefusal, match="ana cannot log in"):
            await client.create_topics(topics("b"))
        await s.remove_user("ana")
        with pytest.raises(HttpRefusal, match="ana cannot log in"):
            await client.create_topics(topics("b"))
        await s.set_user("ana", "pencil")
        await client.create_topics(topics("b"))


async def test_connection_that_was_answered_before_knows_an_ended_token_no_more(tmp_path: Path) -> None:
    """The express lane keeps who a head was of: for as long as that holds, and no longer."""
    async with login_servers(tmp_path) as s, aiohttp.ClientSession() as fresh:
        statuses: list[int] = []
        sent = {"Authorization": f"Bearer {await s.log_in('ana', 'pencil')}"}
        for name in ("a", "b"):
            body = topics(name).model_dump()
            async with fresh.post(s.urls[0] + "/v1/topics", json=body, headers=sent) as answer:
                statuses.append(answer.status)
            s.clock.now_ms += LIFETIME_MS
        assert statuses == [200, 401]


@pytest.mark.parametrize(("renewed_after", "logins"), [(0.8, 1), (0.0, 2)])
async def test_client_renews_its_login_by_its_own_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renewed_after: float, logins: int
) -> None:
    monkeypatch.setattr(login, "_RENEWED_AFTER", renewed_after)
    async with login_servers(tmp_path) as s, s.client("ana", "pencil") as client:
        for _ in range(2):
            await names_seen(client)
        assert s.stage.members[1].soft.counters().http_answers["GET /v1/login", 200] == logins


@pytest.mark.parametrize(
    "header",
    [
        "Basic YTpi",
        "SCRAM-SHA-1 data=YQ==",
        f"{MECHANISM} data=YQ==",
        f"{MECHANISM} sid=a, data=YQ==",
        HttpStep(MECHANISM, "", b"n,,n=ana,r=" + b"r" * 2_000).text,
        HttpStep(MECHANISM, "A" * 5_000 + "." + "0" * 64, b"c=biws,r=r,p=YQ==").text,
    ],
    ids=["basic", "unknown mechanism", "no first message", "no last message", "long first message", "long sid"],
)
async def test_header_that_is_no_message_is_refused_and_told_no_more(tmp_path: Path, header: str) -> None:
    async with login_servers(tmp_path) as s:
        told = await s.say(header)
        assert (told.status, told.body["message"]) == (
            401,
            "the login failed: the user, its password, the mechanism or the form is wrong",
        )


async def test_head_that_is_too_long_is_refused_before_anybody_reads_it(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        sent = {"Authorization": HttpStep(MECHANISM, "", b"n" * 20_000).text}
        async with s.plain.get(s.urls[0] + "/v1/login", headers=sent) as answer:
            assert answer.status == 431


async def test_nobody_logs_in_where_no_mechanism_is_set() -> None:
    async with stage(1) as s, ControllerClient(s.urls, login=PasswordLogin("ana", "pencil")) as client:
        with pytest.raises(ApiError, match=r"access\.login_mechanisms") as refused:
            await client.describe_cluster()
        assert refused.value.code is ErrorCode.RESOURCE_NOT_FOUND


async def test_client_gives_its_token_to_nobody_who_does_not_know_the_password() -> None:
    """Whoever answers in the place of a controller can say that all is well, and cannot show it."""
    asked: list[str] = []

    async def pretend(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Authorization"])
        step = http_step(asked[-1])
        if step.sid:
            reply = {"token": "t" * 40, "principal": "User:ana", "lifetime_ms": 9_000, "expires_at_ms": 1}
            told = HttpStep("", step.sid, b"v=AAAA").parameters
            return web.json_response(reply, headers={"Authentication-Info": told, NODE: "1"})
        challenge = ServerFirst(client_first(step.message).nonce + "more", b"salt", 4096).text.encode()
        told = HttpStep(MECHANISM, "state", challenge).text
        return web.json_response({}, status=401, headers={"WWW-Authenticate": told, NODE: "1"})

    async with server(pretend) as url, ControllerClient([url], login=LOGIN, timeout_ms=1_000) as client:
        with pytest.raises(NotController, match="does not know the password's keys"):
            await client.describe_cluster()
    assert asked
    assert all(header.startswith(MECHANISM) for header in asked)


async def test_delegation_token_logs_in_as_its_owner_and_makes_no_other(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, s.client("ana", "pencil") as ana:
        made = await ana.tokens.create(CreateDelegationTokenRequest())
        login = PasswordLogin(made.token_id, b64encode(made.hmac).decode(), is_delegation_token=True)
        async with ControllerClient(s.urls, login=login) as bearer:
            await bearer.create_topics(topics("a"))
            assert [one.token_id for one in (await bearer.tokens.describe()).tokens] == [made.token_id]
            for refused in (
                bearer.tokens.create(CreateDelegationTokenRequest()),
                bearer.tokens.renew(RenewDelegationTokenRequest(hmac=made.hmac)),
            ):
                with pytest.raises(ApiError, match="not allowed"):
                    await refused
            ended = await ana.tokens.expire(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1))
            assert ended.expiry_timestamp_ms
            with pytest.raises(HttpRefusal, match="cannot log in"):
                await bearer.create_topics(topics("b"))


async def test_status_counts_credentials_that_log_nobody_in_as_kept_and_no_others(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:

        async def kept(logins: Logins | None) -> dict[str, int]:
            for member in s.stage.members.values():
                member.node.access.logins = logins
            counted: dict[str, int] = (await s.stage.ask(1, "GET", "/v1/status"))[1]["unsupported"]
            return counted

        def logins(*mechanisms: str, makes_tokens: bool) -> Logins:
            token_secrets = (lambda: (SECRET,)) if makes_tokens else None
            return Logins(lambda: (SECRET,), token_secrets, mechanisms, LIFETIME_MS, s.clock, lambda: "nonce", s.clock)

        async with s.client("ana", "pencil") as ana:
            await ana.tokens.create(CreateDelegationTokenRequest())
        assert await kept(logins(MECHANISM, makes_tokens=True)) == {}
        assert await kept(logins("SCRAM-SHA-512", makes_tokens=True)) == {"SCRAM credentials": 1}
        assert await kept(logins(MECHANISM, makes_tokens=False)) == {"delegation tokens": 1}
        assert await kept(None) == {"SCRAM credentials": 1, "delegation tokens": 1}


async def test_who_tries_passwords_waits_and_who_is_logged_in_goes_on(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        token, right = await s.log_in("ana", "pencil"), (await s.begin("ana", "pencil"))[1]
        wrong = (await s.begin("ana", "wrong"))[1]
        assert [(await s.say(wrong.text)).status for _ in range(FAILURES_MAX)] == [401] * FAILURES_MAX
        told = await s.say(right.text)
        assert (told.status, told.body["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert (await s.say(f"Bearer {token}", path="/v1/topics")).status == 200
        s.clock.now_ms += FORGOTTEN_MS
        assert (await s.say(right.text)).status == 200


async def test_client_logs_in_again_where_wrong_tokens_of_its_address_are_told_to_wait(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s, s.client("ana", "pencil") as client:
        await client.create_topics(topics("a"))
        s.clock.now_ms += LIFETIME_MS
        for controller in (1, 2, 3):
            seen = [(await s.say(f"Bearer {n}", controller, "/v1/topics")).status for n in range(2 * FAILURES_MAX)]
            assert 429 in seen
        await client.create_topics(topics("b"))
        assert await names_seen(client) == ["a", "b"]


def test_client_logs_in_on_no_way_where_others_read() -> None:
    with pytest.raises(SecretInPlaintext, match=r"10\.0\.0\.1"):
        ControllerClient(["http://10.0.0.1:80"], login=LOGIN)


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [("", "x", MECHANISM), ("zoë", "x", MECHANISM), ("a", "", MECHANISM), ("a", "x", "PLAIN")],
)
def test_login_that_nobody_can_make_is_refused_unsent(user: str, password: str, mechanism: str) -> None:
    with pytest.raises(InvalidLogin):
        PasswordLogin(user, password, mechanism)


def test_password_is_in_no_text_of_a_login() -> None:
    assert "pencil" not in repr(PasswordLogin("ana", "pencil"))
