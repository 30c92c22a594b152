"""Bodies that are larger than they may be, over sockets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.controller.api.content import JSON
from quorate.controller.api.models import ErrorReply
from tests.default_parts import node_limits
from tests.integration.http_stage import stage

TOPICS = "/v1/topics"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_oversized_body_is_refused_whether_it_says_its_size_or_not(is_chunked: bool) -> None:
    async with stage(1, limits=node_limits(body_bytes_max=1_000)) as s:
        body = json.dumps({"topics": [{"name": "x" * 2_000}]}).encode()

        async def pieces() -> Any:
            for at in range(0, len(body), 500):
                yield body[at : at + 500]

        url = s.members[1].url + TOPICS
        data = pieces() if is_chunked else body
        async with s.session.post(url, data=data, headers={"Content-Type": JSON}) as answer:
            reply = ErrorReply.model_validate_json(await answer.read())
        assert (answer.status, reply.error, reply.details) == (413, "INVALID_REQUEST", {"bytes_max": 1_000})


async def test_body_about_one_thing_is_smaller_than_one_of_many() -> None:
    large = {"Content-Type": JSON}
    async with stage(1) as s:
        for path, status, most in (("/v1/features", 413, 65_536), (TOPICS, 400, None)):
            async with s.session.post(s.members[1].url + path, data=b" " * 65_537, headers=large) as answer:
                reply = ErrorReply.model_validate_json(await answer.read())
            assert (answer.status, (reply.details or {}).get("bytes_max")) == (status, most)
            assert most is None or f"{most} is the most" in reply.message
