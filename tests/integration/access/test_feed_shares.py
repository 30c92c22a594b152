"""Places of the feed over HTTP: whoever is no broker and may read it takes none that brokers live by."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.controller.feed.places import FeedPlaces
from tests.integration.access.test_permissions import bearer, guarded

FETCH = "/v1/metadata/batches?offset=0"


@pytest.mark.parametrize("more", [FETCH, f"{FETCH}&stream=true"], ids=["fetch", "stream"])
async def test_reader_who_is_no_broker_is_refused_where_brokers_are_served(tmp_path: Path, more: str) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster")
        member = g.stage.members[1]
        member.node.feed._places = FeedPlaces(4)
        async with g.plain.get(f"{member.url}{FETCH}&stream=true", headers=bearer("User:ana")) as held:
            assert held.status == 200
            for who, status in (("User:ana", 429), ("Broker:11", 200)):
                async with g.plain.get(member.url + more, headers=bearer(who)) as answer:
                    assert answer.status == status, who
                    if status == 429:
                        assert "by User:ana are under way, 1 is the most" in (await answer.json())["message"]
