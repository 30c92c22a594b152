"""Delegation tokens: who may make, renew and end them, until when they live, and what is told of them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from quorate.controller.access import token_ends
from quorate.controller.access.delegation_tokens import (
    TokensByHmac,
    decide_create_token,
    decide_expire_token,
    decide_renew_token,
    describe_tokens,
)
from quorate.controller.access.token_ends import decide_sweep_tokens
from quorate.controller.decisions.controller_config import TokenConfig
from quorate.controller.operations.bootstrap import fresh_records
from quorate.controller.process.composition import Machine, compose
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import (
    DelegationTokenRecord,
    FeatureLevelRecord,
    Record,
    RemoveDelegationTokenRecord,
    VersionedRecord,
)
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.default_parts import controller_config, controller_limits, role_settings, token_config
from tests.unit.controller.manual_quorum import ManualQuorum, RecordingFaults, writes
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import SmallCluster, uuid

SECRET = b"the controllers' own"
CONFIG = token_config(SECRET, max_lifetime_ms=10_000, renew_period_ms=3_000)
NOW = 1_700_000_000_000
ANA, BOB, EVE, NOBODY = "User:ana", "User:bob", "User:eve", "User:ANONYMOUS"
BY_BOB: dict[str, Any] = {"renewers": [{"principal_type": "User", "principal_name": "bob"}]}


class Tokens:
    """A cluster with tokens, and a clock."""

    def __init__(self, config: TokenConfig = CONFIG) -> None:
        self.cluster = SmallCluster(0)
        self.config = config
        self.known = TokensByHmac(config)
        self.now_ms = NOW
        self._number = 0

    def _new_id(self) -> bytes:
        self._number += 1
        return uuid(4, self._number)

    def create(
        self, requester: str = ANA, proof_ends_ms: int | None = None, **fields: Any
    ) -> tuple[CreateDelegationTokenResponse, list[Record]]:
        request, image = CreateDelegationTokenRequest.model_validate(fields), self.cluster.image
        decision = decide_create_token(image, self.config, request, requester, self.now_ms, self._new_id, proof_ends_ms)
        return decision.reply, self.cluster.commit(decision)

    def renew(self, hmac_: bytes, requester: str = ANA, period_ms: int = -1) -> tuple[int, list[Record]]:
        request = RenewDelegationTokenRequest(hmac=hmac_, renew_period_ms=period_ms)
        decision = decide_renew_token(self.cluster.image, self.known, request, requester, self.now_ms)
        return decision.reply.expiry_timestamp_ms, self.cluster.commit(decision)

    def expire(self, hmac_: bytes, requester: str = ANA, period_ms: int = -1) -> tuple[int, list[Record]]:
        request = ExpireDelegationTokenRequest(hmac=hmac_, expiry_time_period_ms=period_ms)
        decision = decide_expire_token(self.cluster.image, self.known, request, requester, self.now_ms)
        return decision.reply.expiry_timestamp_ms, self.cluster.commit(decision)

    @property
    def ids(self) -> set[str]:
        return set(self.cluster.image.delegation_tokens.tokens)


def everything(_: DelegationTokenRecord) -> bool:
    """All tokens may be shown."""
    return True


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call()
    return refused.value.code


def test_token_is_the_requesters_and_its_hmac_is_made_of_its_id_and_the_secret() -> None:
    tokens = Tokens()
    token_id = uuid_text(uuid(4, 1))

    reply, records = tokens.create(**BY_BOB)

    times = (NOW, NOW + 10_000, NOW + 3_000)
    assert records == [DelegationTokenRecord(ANA, ANA, (BOB,), *times, token_id)]
    assert reply.hmac == hmac.new(SECRET, token_id.encode(), hashlib.sha512).digest()
    assert reply.model_dump(exclude={"hmac"}) == {
        "principal_type": "User",
        "principal_name": "ana",
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "ana",
        "issue_timestamp_ms": NOW,
        "expiry_timestamp_ms": NOW + 3_000,
        "max_timestamp_ms": NOW + 10_000,
        "token_id": token_id,
    }
    assert repr(reply.hmac) not in repr(reply)


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "end_ms"),
    [(-1, 10_000, 3_000), (0, 10_000, 3_000), (20_000, 10_000, 3_000), (5_000, 5_000, 3_000), (2_000, 2_000, 2_000),
     (-(2**63), 10_000, 3_000), (2**63 - 1, 10_000, 3_000)],
)  # fmt: skip
def test_lifetime_that_is_asked_for_only_shortens(asked_ms: int, max_ms: int, end_ms: int) -> None:
    reply, _ = Tokens().create(max_lifetime_ms=asked_ms)
    assert (reply.max_timestamp_ms, reply.expiry_timestamp_ms) == (NOW + max_ms, NOW + end_ms)


@pytest.mark.parametrize(("proof_ms", "asked_ms", "end_ms"), [(2_000, -1, 1_999), (2_000, 500, 500), (1, -1, 0)])
def test_token_ends_with_the_proof_that_it_was_made_by_and_no_renewal_is_longer(
    proof_ms: int, asked_ms: int, end_ms: int
) -> None:
    tokens = Tokens()
    made, _ = tokens.create(proof_ends_ms=NOW + proof_ms, max_lifetime_ms=asked_ms)
    assert (made.max_timestamp_ms, made.expiry_timestamp_ms) == (NOW + end_ms, NOW + end_ms)
    assert tokens.renew(made.hmac)[0] == NOW + end_ms
    ended = code_of(lambda: tokens.create(proof_ends_ms=NOW))
    assert ended is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_proof_that_lasts_longer_changes_nothing() -> None:
    made, _ = Tokens().create(proof_ends_ms=NOW + 10**14)
    assert (made.max_timestamp_ms, made.expiry_timestamp_ms) == (NOW + 10_000, NOW + 3_000)


def test_token_for_somebody_else_is_theirs() -> None:
    tokens = Tokens()
    reply, (record,) = tokens.create(owner_principal_type="User", owner_principal_name="bob")
    assert isinstance(record, DelegationTokenRecord)
    assert (record.owner, record.requester, reply.principal_name) == (BOB, ANA, "bob")
    assert code_of(lambda: tokens.renew(reply.hmac, ANA)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert tokens.renew(reply.hmac, BOB)[0] == NOW + 3_000


def test_owner_without_a_name_is_the_requester() -> None:
    assert Tokens().create(owner_principal_type="Group", owner_principal_name="")[0].principal_name == "ana"


def test_renewal_moves_the_end_up_to_the_last_day() -> None:
    tokens = Tokens()
    made, (record,) = tokens.create(**BY_BOB)
    assert isinstance(record, DelegationTokenRecord)
    tokens.now_ms += 1_000
    end, (renewed,) = tokens.renew(made.hmac, BOB)
    assert end == NOW + 4_000
    assert isinstance(renewed, DelegationTokenRecord)
    assert (renewed.expiration_timestamp, renewed.max_timestamp) == (end, record.max_timestamp)
    assert tokens.renew(made.hmac, ANA, period_ms=500)[0] == NOW + 1_500, "also sooner"
    tokens.renew(made.hmac)
    tokens.now_ms = NOW + 3_999
    tokens.renew(made.hmac)
    tokens.now_ms = NOW + 6_999
    tokens.renew(made.hmac)
    tokens.now_ms = NOW + 9_998
    assert tokens.renew(made.hmac)[0] == NOW + 10_000


def test_token_ends_after_a_time_or_at_once() -> None:
    tokens = Tokens()
    made, _ = tokens.create(**BY_BOB)
    assert tokens.expire(made.hmac, ANA, period_ms=2**63 - 1)[0] == NOW + 10_000, "at the latest on its last day"
    assert tokens.expire(made.hmac, BOB, period_ms=700)[0] == NOW + 700
    tokens.now_ms += 700
    assert tokens.expire(made.hmac, period_ms=700)[0] == NOW + 1_400, "its last millisecond counts"
    end, records = tokens.expire(made.hmac, period_ms=-5)
    assert (end, records) == (tokens.now_ms, [RemoveDelegationTokenRecord(made.token_id)])
    assert tokens.ids == set()
    assert code_of(lambda: tokens.expire(made.hmac)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_token_can_only_be_removed() -> None:
    """In Kafka's order: whose it is comes first where it is ended, and last where it is renewed."""
    tokens = Tokens()
    made, _ = tokens.create()
    tokens.now_ms += 3_001
    assert code_of(lambda: tokens.renew(made.hmac)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert code_of(lambda: tokens.renew(made.hmac, EVE)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert code_of(lambda: tokens.expire(made.hmac, period_ms=0)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    for period_ms in (-1, 0):
        refused = code_of(lambda: tokens.expire(made.hmac, EVE, period_ms=period_ms))  # noqa: B023 - called at once
        assert refused is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    end, records = tokens.expire(made.hmac, period_ms=-1)
    assert (end, records) == (tokens.now_ms, [RemoveDelegationTokenRecord(made.token_id)])


@pytest.mark.parametrize("change", ["renew", "expire"])
def test_change_by_others_or_of_others_is_refused(change: str) -> None:
    tokens = Tokens()
    made, _ = tokens.create(**BY_BOB)
    ask = getattr(tokens, change)
    end = tokens.cluster.next_offset
    assert code_of(lambda: ask(made.hmac, EVE)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert code_of(lambda: ask(made.hmac, NOBODY)) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for wrong in (b"", made.hmac[:-1], made.hmac + b"x", bytes(64), made.token_id.encode()):
        assert code_of(partial(ask, wrong)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert tokens.cluster.next_offset == end


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"renewers": [{"principal_type": "Group", "principal_name": "x"}]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"renewers": [{"principal_type": "", "principal_name": "x"}]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner_principal_name": "bob"}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner_principal_name": "bob", "owner_principal_type": ""}, ErrorCode.INVALID_PRINCIPAL_TYPE),
        ({"owner_principal_name": "bob", "owner_principal_type": "Us:er"}, ErrorCode.INVALID_PRINCIPAL_TYPE),
    ],
)
def test_principals_that_are_none_are_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    assert code_of(lambda: Tokens().create(**fields)) is code


def test_without_a_secret_or_below_its_level_there_are_no_tokens() -> None:
    off = Tokens(token_config(None))
    for call in (off.create, lambda: off.renew(b"x"), lambda: off.expire(b"x")):
        assert code_of(call) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    disabled = code_of(lambda: describe_tokens(off.cluster.image, off.config, None, "", 10, everything))
    assert disabled is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    old = Tokens()
    old.cluster.write(FeatureLevelRecord("metadata.version", 13))
    for call in (old.create, lambda: old.renew(b"x"), lambda: old.expire(b"x")):
        assert code_of(call) is ErrorCode.UNSUPPORTED_VERSION
    assert SECRET.decode() not in repr(controller_config(node_id=1, cluster_id="c", tokens=CONFIG))


def test_tokens_of_an_imported_log_are_found_and_forgotten_ones_are_not_kept() -> None:
    tokens = Tokens()
    hmacs = [tokens.create()[0].hmac for _ in range(20)]
    fresh = TokensByHmac(CONFIG)
    image = tokens.cluster.image.delegation_tokens.tokens
    assert [fresh.find(image, given) is not None for given in (*hmacs, bytes(64))] == [True] * 20 + [False]
    for given in hmacs[1:]:
        tokens.expire(given)
    image = tokens.cluster.image.delegation_tokens.tokens
    assert fresh.find(image, hmacs[5]) is None, "it was known, and its token is gone"
    assert fresh.find(image, bytes(64)) is None
    assert fresh.find(image, hmacs[0]) is not None
    assert len(fresh._looked_at) == len(fresh._ids) == 1


def test_token_is_known_as_long_as_the_secret_it_was_made_with_is_believed() -> None:
    other, made = b"another one", {}
    for secret in (SECRET, other):
        tokens = Tokens(replace(CONFIG, secrets=lambda: (secret,)))  # noqa: B023  # asked in this turn alone
        made[secret] = tokens.create()[0].hmac, tokens.cluster.image.delegation_tokens.tokens
    believed: tuple[bytes, ...] = ()
    known = TokensByHmac(replace(CONFIG, secrets=lambda: believed))
    for believed in ((SECRET,), (SECRET, other), (other, SECRET), (other,), (SECRET,)):
        for secret, (given, image) in made.items():
            assert (known.find(image, given) is not None) is (secret in believed)


def test_description_has_pages_and_owners_and_no_hmac() -> None:
    tokens = Tokens()
    made = [tokens.create(ANA if n % 2 else EVE, **(BY_BOB if n == 3 else {}))[0] for n in range(6)]
    image = tokens.cluster.image

    def ids(owner: str | None, after: str = "", limit: int = 10) -> tuple[list[str], str | None]:
        page = describe_tokens(image, CONFIG, owner, after, limit, everything)
        return [token.token_id for token in page.tokens], page.next_after

    everybody = sorted(reply.token_id for reply in made)
    assert ids(None) == (everybody, None)
    assert ids(None, limit=4) == (everybody[:4], everybody[3])
    assert ids(None, after=everybody[3], limit=4) == (everybody[4:], None)
    assert ids(EVE)[0] == sorted(made[n].token_id for n in (0, 2, 4))
    assert ids(BOB)[0] == [made[3].token_id], "a renewer sees it, too"
    assert ids("User:x") == ([], None)
    text = describe_tokens(image, CONFIG, None, "", 10, everything).model_dump_json()
    assert "hmac" not in text


def test_description_shows_whatever_an_imported_log_has() -> None:
    tokens = Tokens()
    odd = DelegationTokenRecord("User:", "nobody", ("", "x" * 30_000), NOW, NOW, NOW, "odd")
    tokens.cluster.write(odd)
    (seen,) = describe_tokens(tokens.cluster.image, CONFIG, "nobody", "", 10, everything).tokens
    assert (seen.principal_type, seen.principal_name, seen.token_requester_principal_type) == ("User", "", "nobody")
    assert [len(one.principal_type) for one in seen.renewers] == [0, 30_000]


def test_longest_principals_fit_a_record_whatever_their_characters_are() -> None:
    longest = {"principal_type": "User", "principal_name": "\U0001f600" * 8_000}
    _, (record,) = Tokens().create(
        owner_principal_type="\U0001f600" * 100,
        owner_principal_name=longest["principal_name"],
        renewers=[longest] * 100,
    )
    assert isinstance(record, DelegationTokenRecord)
    assert len(record.owner.encode()) == 32_401


def test_sweep_removes_what_has_ended_in_bounded_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_ends, "SWEPT_MAX", 4)
    tokens = Tokens()
    ended = {tokens.create(max_lifetime_ms=100)[0].token_id for _ in range(10)}
    living = {tokens.create()[0].token_id for _ in range(3)}
    assert decide_sweep_tokens(tokens.cluster.image, NOW + 100).records == []
    removed = []
    while True:
        decision = decide_sweep_tokens(tokens.cluster.image, NOW + 101)
        removed.append(len(tokens.cluster.commit(decision)))
        if decision.reply is None:
            break
    assert removed == [4, 4, 2]
    assert tokens.ids == living
    assert ended.isdisjoint(living)


@pytest.mark.parametrize(("secret", "left"), [(SECRET, set()), (None, {"old"})])
def test_active_controller_sweeps_by_itself_where_there_are_tokens(secret: bytes | None, left: set[str]) -> None:
    scheduler, quorum, faults = ManualScheduler(NOW), ManualQuorum(), RecordingFaults()
    config = controller_config(node_id=1, cluster_id="c", tokens=token_config(secret))
    settings, machine = (
        role_settings(idle_noop_interval_ms=0, token_sweep_interval_ms=60_000),
        Machine(scheduler, faults, JavaRandom(1), bytes),
    )
    controller = compose(config, settings, controller_limits(), fresh_records(), quorum, machine).controller
    quorum.leader_id, quorum.leader_epoch = 1, 1
    controller.on_leader_change(1, 1)
    scheduler.run()
    record = DelegationTokenRecord(ANA, ANA, (), NOW, NOW + 500, NOW + 500, "old")
    controller.events.append(controller.write_internally("make", writes(VersionedRecord(record, 0))))
    scheduler.run()

    def commit() -> set[str]:
        if quorum.log_end_offset > quorum.committed:
            controller.on_commit(quorum.take_committed(1_000))
        scheduler.run()
        return set(controller.stable.delegation_tokens.tokens)

    assert commit() == {"old"}
    scheduler.advance(59_000)
    assert commit() == {"old"}, "nobody has looked yet"
    scheduler.advance(1_000)
    assert commit() == left
    assert faults.seen == []
