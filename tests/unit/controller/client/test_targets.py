"""What a client refuses to send, and what one that was closed says: nothing leaves, and the error names it."""

from collections.abc import Awaitable, Callable

import pytest

from quorate.client import ApiError, ClientClosed, ControllerClient, ErrorCode
from quorate.controller.client.targets import TARGET_BYTES_MAX, InvalidUrl, check_target, controller_url, quoted

#: Nobody listens there; three, so that one is not asked for another's sake.
URLS = ["127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"]
LONG = "x" * 100_000
HALF = "orders\ud800"

Call = Callable[[ControllerClient], Awaitable[object]]

CALLS: dict[str, tuple[Callable[[ControllerClient, str], Awaitable[object]], str]] = {
    "a topic": (lambda client, text: client.describe_topic(text), "the topic name"),
    "a deleted topic": (lambda client, text: client.delete_topic(text), "the topic name"),
    "a page of topics": (lambda client, text: client.list_topics(after=text), "parameter after"),
    "a resource of labels": (lambda client, text: client.labels.describe(resource=text), "parameter resource"),
    "a user": (lambda client, text: client.access.describe_user_scram_credentials(text), "parameter user"),
    "a quota of a client": (
        lambda client, text: client.access.describe_client_quotas({"client-id": ("EXACT", text)}),
        "parameter client_id",
    ),
}


@pytest.mark.parametrize("text", ["127.0.0.1:65536", "https://host:99999/", "[::1]:" + "9" * 5_000])
def test_port_that_is_too_high_is_told_with_the_highest(text: str) -> None:
    with pytest.raises(InvalidUrl, match=r"names no controller: a port is 65535 at most$"):
        controller_url(text)


@pytest.mark.parametrize("text", ["127.0.0.1:65535", "127.0.0.1:00000080"])
def test_port_that_can_be_is_none_that_is_too_high(text: str) -> None:
    assert controller_url(text) == f"http://{text}"


@pytest.mark.parametrize("name", CALLS)
async def test_text_too_long_for_an_address_is_refused_by_its_limit(name: str) -> None:
    call, what = CALLS[name]
    async with ControllerClient(URLS, timeout_ms=300) as client:
        with pytest.raises(
            ApiError, match=rf"{what} 'xxx.*has 100000 characters.*may have {TARGET_BYTES_MAX}"
        ) as found:
            await call(client, LONG)

    assert found.value.code is ErrorCode.INVALID_REQUEST
    assert len(str(found.value)) < 250


@pytest.mark.parametrize("name", CALLS)
async def test_half_a_character_is_refused_and_not_left_out(name: str) -> None:
    call, what = CALLS[name]
    async with ControllerClient(URLS, timeout_ms=300) as client:
        with pytest.raises(ApiError, match=rf"{what} has the surrogate '\\ud800' at character 6") as found:
            await call(client, HALF)

    assert found.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("bad", [("record:a", "", "1"), ("record:a", "acme/x", HALF), ("", "acme/x", "1")])
async def test_label_that_cannot_be_is_an_error_of_ours_that_names_field_and_rule(bad: tuple[str, str, str]) -> None:
    async with ControllerClient(URLS, timeout_ms=300) as client:
        field = "value" if bad[2] == HALF else "key" if not bad[1] else "resource"
        for call in (client.labels.set(*bad), client.labels.compare_and_set(*bad, None)):
            with pytest.raises(ApiError, match=rf"LabelEntry: {field}: .*, not '") as found:
                await call
            assert found.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_topic_whose_name_would_lead_elsewhere_is_refused(name: str) -> None:
    async with ControllerClient(URLS, timeout_ms=300) as client:
        for call in (client.describe_topic, client.delete_topic):
            with pytest.raises(ApiError, match=f"The given topic name '{name}' cannot be represented") as found:
                await call(name)
            assert found.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_parts_are_within_the_limit_together_or_refused() -> None:
    half = "é" * (TARGET_BYTES_MAX // 12)  # six bytes each, as two escapes
    check_target("/v1/topics", {"after": half, "limit": 3})
    assert len(quoted("a name", half)) == TARGET_BYTES_MAX // 12 * 6

    with pytest.raises(ApiError, match=r"the address of the request has \d+ bytes: it may have"):
        check_target("/v1/topics", {"after": half, "name": half})


@pytest.mark.parametrize("urls", [URLS[:1], URLS])
async def test_closed_client_says_so_and_opens_nothing(urls: list[str]) -> None:
    client = ControllerClient(urls, timeout_ms=300)
    async with client:
        pass
    calls: list[Call] = [
        ControllerClient.describe_cluster,
        lambda closed: closed.delete_topic("orders"),
        lambda closed: closed.labels.set("cluster", "acme/x", "1"),
        lambda closed: closed.status_of(urls[0], 300),
        ControllerClient.__aenter__,
    ]
    for call in calls:
        with pytest.raises(ClientClosed, match="was closed"):
            await call(client)
    await client.close()
