"""What a server counts of its answers and connections, as `/metrics` shows it."""

from __future__ import annotations

from quorate.controller.connections.http_counts import BUCKETS, CONTROLLER_LIMITS
from tests.default_parts import node_limits
from tests.integration.controllers.test_metrics_page import Scrape
from tests.integration.http.test_express import HOST, TOPICS, Client, in_lane, new_topics, request
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

COUNT = "http_request_seconds_count"


async def scraped(on: Stage) -> Scrape:
    async with on.session.get(f"{on.urls[0]}/metrics") as answer:
        assert answer.status == 200
        return Scrape(await answer.text())


async def test_answers_have_a_histogram_for_each_route_and_none_for_a_path() -> None:
    """One request goes by the short way, one by the framework's, and one to nowhere."""
    async with stage(1) as on:
        await on.register(1, 1)
        before = (await scraped(on)).values
        client = await Client.open(on)
        await client.write(request(TOPICS, new_topics("orders", validate_only=False)))
        assert (await client.read())[0] == 200
        assert in_lane(on)
        for path, status in (("/v1/topics/orders", 200), ("/v1/topics/none", 404), ("/v1/elsewhere/orders", 404)):
            await client.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            assert (await client.read())[0] == status
        seen = await scraped(on)
        more = {key: value - before.get(key, 0) for key, value in seen.values.items() if key[0] == f"quorate_{COUNT}"}
        counts = {key[1]: value for key, value in more.items() if value and key[1] != "GET /metrics"}
        assert counts == {"POST /v1/topics": 1, "GET /v1/topics/{name}": 2, "none": 1}
        bucket = "quorate_http_request_seconds_bucket"
        ends = [key[1] for key in seen.values if key[0] == bucket and key[2] == "none"]
        assert ends == [*map(str, BUCKETS), "+Inf"]
        assert 0 < seen["http_request_seconds_sum", "POST /v1/topics"] < 10
        client.close()


async def test_limits_count_what_they_refuse_once_each() -> None:
    limits = node_limits(body_bytes_max=400, connections_per_address_max=3)
    async with stage(1, limits=limits) as on:
        client = await Client.open(on)
        await client.write(request(TOPICS, b" " * 401))
        assert (await client.read())[0] == 413
        client.close()
        client = await Client.open(on)
        await client.write(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * 9_000 + b"\r\n\r\n")
        assert (await client.read())[0] == 431
        client.close()
        await scraped(on)  # the session's own connection is one of the three from now on

        async def are_gone() -> bool:
            return (await scraped(on))["http_connections_open"] == 1

        await eventually(are_gone, "both connections are closed")
        others = [await Client.open(on) for _ in range(2)]
        one_too_many = await Client.open(on)
        assert (await one_too_many.read())[0] == 429
        seen = await scraped(on)
        refused = {key[1]: value for key, value in seen.values.items() if "limit_refusals_total" in key[0]}
        assert refused == dict.fromkeys(CONTROLLER_LIMITS, 0) | {
            "body_bytes_max": 1,
            "head_bytes_max": 1,
            "connections_per_address_max": 1,
        }
        assert seen["http_connections_open"] == 3
        for client in (*others, one_too_many):
            client.close()
