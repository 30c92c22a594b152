"""How many delegation tokens there may be: those that live count, and those that have ended make room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.controller.access import token_room
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from tests.unit.controller.access.test_delegation_tokens import CONFIG, EVE, Tokens

SMALL = replace(CONFIG, count_max=5, per_owner_max=3)


def refused(tokens: Tokens, **fields: Any) -> str:
    """What is said where there is no room; nothing changes."""
    end = tokens.cluster.next_offset
    with pytest.raises(ApiError) as error:
        tokens.create(**fields)
    assert error.value.code is ErrorCode.POLICY_VIOLATION
    assert tokens.cluster.next_offset == end
    return error.value.message


def test_one_owner_has_so_many_whoever_asks_and_the_whole_cluster_so_many() -> None:
    tokens = Tokens(SMALL)
    made = [tokens.create()[0] for _ in range(3)]
    assert refused(tokens) == "User:ana has 3 delegation tokens, and tokens.per_owner_max is 3: end some, or raise it."
    for_ana = {"owner_principal_type": "User", "owner_principal_name": "ana"}
    assert "User:ana has 3" in refused(tokens, requester=EVE, **for_ana)
    tokens.create(EVE)
    tokens.create(EVE)
    said = "There are 5 delegation tokens, and tokens.count_max is 5: end some, or raise it."
    assert refused(tokens, requester=EVE) == said
    tokens.expire(made[0].hmac)
    tokens.create(EVE)
    assert len(tokens.ids) == 5


def test_tokens_that_have_ended_make_room_and_the_owners_own_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_room, "SWEPT_MAX", 3)
    tokens = Tokens(SMALL)
    others = {tokens.create(EVE, max_lifetime_ms=100)[0].token_id for _ in range(2)}
    own = sorted(tokens.create(max_lifetime_ms=100)[0].token_id for _ in range(2))
    living = tokens.create()[0].token_id
    tokens.now_ms += 100
    assert "User:ana has 3" in refused(tokens), "its last millisecond counts"
    tokens.now_ms += 1
    made, records = tokens.create()
    removed = [record.token_id for record in records if isinstance(record, RemoveDelegationTokenRecord)]
    assert removed == [*own, min(others)]
    assert isinstance(records[-1], DelegationTokenRecord)
    assert tokens.ids == {max(others), living, made.token_id}


def test_where_there_is_room_nothing_else_is_written() -> None:
    tokens = Tokens(SMALL)
    tokens.create(max_lifetime_ms=100)
    tokens.now_ms += 101
    assert len(tokens.create()[1]) == 1
