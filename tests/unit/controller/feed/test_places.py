"""Places of the feed: brokers have half of them for sure, and no principal the other half alone."""

from __future__ import annotations

import pytest

from quorate.controller.feed.places import FeedPlaces
from quorate.metadata_log.errors import Overloaded


def test_others_than_brokers_have_half_and_each_a_quarter() -> None:
    places = FeedPlaces(8)
    for reader in ("User:a", "User:a", "User:b"):
        places.enter(reader)
    with pytest.raises(Overloaded, match="by User:a are under way, 2 is the most of one principal"):
        places.enter("User:a")
    places.enter("User:c")
    with pytest.raises(Overloaded, match="others than brokers are under way, 4 is the most"):
        places.enter("User:d")
    for _ in range(4):
        places.enter(None)
    with pytest.raises(Overloaded, match="8 fetches of the feed are under way, 8 is the most"):
        places.enter(None)
    assert places.taken == 8


def test_place_that_is_given_back_is_free() -> None:
    places = FeedPlaces(4)
    for _ in range(3):
        places.enter("User:a")
        places.leave("User:a")
    assert places.taken == 0


def test_readers_without_a_bound_have_all_places() -> None:
    places = FeedPlaces(3)
    for _ in range(3):
        places.enter(None)
    with pytest.raises(Overloaded):
        places.enter(None)
