"""Who asked: what a principal may be, and that it stays with a change up to its decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.origin import ANONYMOUS, ORIGIN, PRINCIPAL_CHARS_MAX, Origin, check_principal
from quorate.controller.engine.interfaces import DecidedWrite, WriteContext
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.unit.controller.manual_quorum import Bench, topic

ALICE, BOB = (Origin(f"User:{name}", "127.0.0.1", f"request-{name}") for name in ("alice", "bob"))


@pytest.mark.parametrize("text", [ANONYMOUS, "User:CN=a b, O=c", "Group:x:y", f"User:{'x' * 251}"])
def test_principal_is_a_type_and_a_name(text: str) -> None:
    assert check_principal(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alice",
        ":alice",
        "User:",
        "User: ",
        "User:alice ",
        "Us er:a",
        "User:a\nb",
        "User:\x7f",
        "User:ä",
        "User:\udc80",
    ],
)
def test_other_texts_are_no_principals(text: str) -> None:
    with pytest.raises(ApiError, match="is Type:name in printable ASCII") as refused:
        check_principal(text)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_long_principal_is_refused_without_being_repeated() -> None:
    with pytest.raises(ApiError, match=f"at most {PRINCIPAL_CHARS_MAX} characters, not 257"):
        check_principal("User:" + "x" * 252)


async def test_origin_reaches_the_decision_and_what_is_told_of_it() -> None:
    """Two tasks ask at the same time, and the controller acts by itself in between."""
    bench = Bench()
    told: list[DecidedWrite] = []
    seen: dict[str, Origin | None] = {}
    bench.lead()
    bench.commit()
    bench.controller.on_decided = told.append

    def writing(name: str, number: int) -> Callable[[WriteContext], Decision[str]]:
        def decide(context: WriteContext) -> Decision[str]:
            seen[name] = context.origin
            return Decision([topic(number)] if number else (), name)

        return decide

    def refused(context: WriteContext) -> Decision[str]:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    async def ask(origin: Origin, name: str, operation: Callable[[WriteContext], Decision[str]]) -> str:
        ORIGIN.set(origin)
        return await bench.controller.append_write_event(name, operation)

    tasks = [
        asyncio.create_task(ask(ALICE, "first", writing("first", 1))),
        asyncio.create_task(ask(BOB, "second", writing("second", 2))),
        asyncio.create_task(ask(BOB, "refused", refused)),
    ]
    await asyncio.sleep(0)
    bench.controller.events.append(bench.controller.write_internally("own", writing("own", 0)))
    await bench.settle()
    bench.commit()
    assert [await task for task in tasks[:2]] == ["first", "second"]
    with pytest.raises(ApiError):
        await tasks[2]
    assert seen == {"first": ALICE, "second": BOB, "own": None}
    end = bench.quorum.log_end_offset
    assert [(t.name, t.origin, t.base_offset, t.end_offset, t.error and t.error.code) for t in told] == [
        ("first", ALICE, end - 2, end - 1, None),
        ("second", BOB, end - 1, end, None),
        ("refused", BOB, end, end, ErrorCode.INVALID_REQUEST),
        ("own", None, end, end, None),
    ]
