"""Which hosts are this machine."""

from __future__ import annotations

import pytest

from quorate.metadata_log.loopback import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example", "controller", "::ffff:10.0.0.1", "127.1"]
)
def test_any_other_host_is_not_taken_for_it(host: str) -> None:
    assert not is_loopback(host)
