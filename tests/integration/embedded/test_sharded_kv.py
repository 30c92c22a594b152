"""The store of docs/sharded-kv.md: killed, stopped and moved it loses nothing and reads nothing stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.embedded.kv_trial import Lost, trial


async def test_store_loses_no_acknowledged_write_and_reads_nothing_stale(tmp_path: Path) -> None:
    async with trial(tmp_path, seed=1) as made:
        await made.run(("freeze", "controller", "worker", "behind", "move"))

    assert made.refused > 0, "a leader that was stopped has been asked"
    assert min(made.acknowledged.values()) > 0
    assert made.reads > 100


@pytest.mark.parametrize(
    ("rule", "rounds", "said"),
    [
        ("lease", ("freeze",), "read from a leader that was stopped"),
        ("maximal-isr", ("behind",), "was acknowledged"),
    ],
)
async def test_store_that_breaks_a_rule_is_found(rule: str, rounds: tuple[str, ...], said: str, tmp_path: Path) -> None:
    async with trial(tmp_path, seed=1, program=("-m", "tests.integration.embedded.kv_mutants", rule)) as made:
        with pytest.raises((Lost, BaseExceptionGroup)) as broken:
            await made.run(rounds)

    assert said in str(first_loss(broken.value))


def first_loss(error: BaseException) -> Lost:
    """What was lost, out of whatever it was raised in."""
    while isinstance(error, BaseExceptionGroup):
        (error, *_) = (error.subgroup(Lost) or error).exceptions
    assert isinstance(error, Lost), error
    return error
