"""Addresses that somebody has all of are one."""

from __future__ import annotations

import pytest

from quorate.controller.api.networks import network_of


@pytest.mark.parametrize(
    ("address", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("127.0.0.1", "127.3.2.1", True),
        ("127.0.0.1", "::1", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("", "fe80::1%2%3", False),
    ],
)
def test_addresses_are_one_where_one_may_have_both(address: str, other: str, *, is_same: bool) -> None:
    assert (network_of(address) == network_of(other)) == is_same
