"""A body of a remembered form is what unpacking it would find; any other is not of that form."""

from __future__ import annotations

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.api.content import pack
from quorate.controller.http.packed_forms import PackedForm
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.controller.protocol.deletions import UndeletedReplicas

KEYS = ("current_metadata_offset", "metadata_offset")
OFFSETS = st.one_of(st.integers(-1, 2**63 - 1), st.integers(-1, 70_000))
REQUESTS = st.builds(
    lambda broker, epoch, offset, wants_fence, said: BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=epoch,
        current_metadata_offset=offset,
        want_fence=wants_fence,
        undeleted=UndeletedReplicas(metadata_offset=said, topics=[]),
    ),
    st.integers(0, 2**31 - 1),
    OFFSETS,
    OFFSETS,
    st.booleans(),
    OFFSETS,
)


def _known(request: BrokerHeartbeatRequest) -> tuple[int, int, bool]:
    return request.broker_id, request.broker_epoch, request.want_fence


@given(REQUESTS, OFFSETS, OFFSETS)
def test_body_of_the_form_says_what_the_first_one_said_and_its_own_number(
    first: BrokerHeartbeatRequest, offset: int, said: int
) -> None:
    form = PackedForm.of(pack(first), KEYS)
    body = first.model_dump() | {"current_metadata_offset": offset}
    body["undeleted"]["metadata_offset"] = said
    number = None if form is None else form.first_number(msgpack.packb(body))
    assert number in (None, offset)
    if form is not None:
        assert form.first_number(pack(first)) == first.current_metadata_offset


@given(REQUESTS, REQUESTS)
def test_body_that_says_anything_else_is_not_of_the_form(
    first: BrokerHeartbeatRequest, other: BrokerHeartbeatRequest
) -> None:
    form = PackedForm.of(pack(first), KEYS)
    if form is not None and _known(first) != _known(other):
        assert form.first_number(pack(other)) is None


@given(REQUESTS, st.data())
def test_body_with_one_byte_changed_is_of_another_form_or_a_valid_request(
    first: BrokerHeartbeatRequest, data: st.DataObject
) -> None:
    packed = pack(first)
    form = PackedForm.of(packed, KEYS)
    at = data.draw(st.integers(0, len(packed) - 1))
    changed = packed[:at] + bytes((data.draw(st.integers(0, 255)),)) + packed[at + 1 :]
    number = None if form is None else form.first_number(changed)
    if number is not None:
        request = BrokerHeartbeatRequest.model_validate(msgpack.unpackb(changed))
        assert (_known(request), request.current_metadata_offset) == (_known(first), number)


def test_form_is_found_where_numbers_have_bytes_of_their_own() -> None:
    wide = {"a": 1, "b": 300}
    form = PackedForm.of(msgpack.packb(wide), ("b",))
    assert form is not None
    assert form.first_number(msgpack.packb(wide | {"b": 65_535})) == 65_535
    for other in (wide | {"b": 65_536}, wide | {"b": 299, "a": 2}, wide | {"b": True}, {}):
        assert form.first_number(msgpack.packb(other)) is None
    for body in ({"a": 1, "b": 5}, {"a": 1, "b": 2**63}, {"a": 1, "b": -300}, {"a": 1, "b": "text"}, {"a": 300}):
        assert PackedForm.of(msgpack.packb(body), ("b",)) is None
    assert PackedForm.of(msgpack.packb(wide)[:-1], ("b",)) is None
