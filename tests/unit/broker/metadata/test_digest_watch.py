"""A broker process compares its state with the controllers'."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorate.broker.controllers.feed import FeedUnavailable
from quorate.broker.environment import BrokerMachine
from quorate.broker.metadata.digest_watch import ImageDiffers, ImageDigestWatch
from quorate.broker.metadata.digests import ImageDigests


class Controller:
    def __init__(self, name: str, digest: str | None) -> None:
        self.name = name
        self.digest = digest
        self.asked = 0

    async def digest_at(self, offset: int) -> str:
        assert offset == 7
        self.asked += 1
        if self.digest is None:
            raise FeedUnavailable("not now")
        return self.digest


class Own:
    """This process's digests, always of one state."""

    spent_seconds = 0.0

    async def at(self, offset: int | None, wait_ms: float) -> tuple[int, str]:
        return 7, "own"


class Slept(Exception):
    """The watch has made its round."""


def watch(*digests: str | None) -> tuple[ImageDigestWatch, list[Controller], list[float]]:
    controllers = [Controller(name, digest) for name, digest in zip("abc", digests, strict=False)]
    sleeps: list[float] = []

    async def sleep_ms(wait_ms: float) -> None:
        sleeps.append(wait_ms)
        if wait_ms > 1_000:
            raise Slept

    machine = BrokerMachine(lambda: 0.0, lambda: 0.0, sleep_ms, lambda: 0.5, lambda: b"")
    return ImageDigestWatch(cast("ImageDigests", Own()), controllers, "b", machine), controllers, sleeps


async def test_broker_with_the_state_of_the_controller_it_follows_asks_nobody_else() -> None:
    made, controllers, sleeps = watch("x", "own", "x")
    with pytest.raises(Slept):
        await made.run()
    assert [one.asked for one in controllers] == [0, 1, 0]
    assert sleeps == [30_000.0]


@pytest.mark.parametrize(
    "digests", [("own", "x", "x"), ("own", "x", None), (None, "x", None), ("y", "x", "z"), (None, None, None)]
)
async def test_broker_goes_on_where_no_majority_of_controllers_is_against_it(digests: tuple[Any, ...]) -> None:
    made, _, sleeps = watch(*digests)
    with pytest.raises(Slept):
        await made.run()
    assert sleeps == [30_000.0]


@pytest.mark.parametrize("digests", [("x", "x", "x"), ("x", "x", None), ("x", "x", "y")])
async def test_broker_that_most_controllers_are_against_twice_ends(digests: tuple[Any, ...]) -> None:
    made, _, sleeps = watch(*digests)
    with pytest.raises(ImageDiffers, match=r"at offset 7 differs from that of [23] of 3 controllers"):
        await made.run()
    assert sleeps == [1_000.0]
