"""How fast connections may come, by a clock that only the test moves: of one address, of every other one, of all."""

from __future__ import annotations

import pytest

from quorate.controller.quotas import connections
from quorate.controller.quotas.connections import ConnectionRates
from quorate.metadata_log.errors import Overloaded
from quorate.metadata_log.records.records import ClientQuotaRecord, EntityData
from quorate.snapshots.image.image_parts import ClientQuotasImage
from tests.unit.controller.small_cluster import SmallCluster


def quotas(**rates: float) -> ClientQuotasImage:
    """Quotas by address, dots for underscores; ``default``: of every other one."""
    cluster = SmallCluster(brokers=0)
    for name, rate in rates.items():
        address = None if name == "default" else name.strip("_").replace("_", ".")
        entity = (EntityData("ip", address),)
        cluster.write(ClientQuotaRecord(entity, "connection_creation_rate", rate))
    return cluster.image.client_quotas


def admitted(rates: ConnectionRates, address: str, image: ClientQuotasImage, now_ms: float, tried: int) -> int:
    """The number of connections that may be, of so many at once."""
    count = 0
    for _ in range(tried):
        try:
            rates.admit(address, image, now_ms)
            count += 1
        except Overloaded:
            pass
    return count


def test_address_has_its_rate_others_the_default_and_none_without_quotas() -> None:
    rates, image = ConnectionRates(2, 0), quotas(_10_0_0_1=5, default=1)
    assert [admitted(rates, address, image, 0.0, 20) for address in ("10.0.0.1", "10.0.0.2", "::1")] == [11, 3, 3]
    assert [admitted(rates, address, image, 1000.0, 20) for address in ("10.0.0.1", "10.0.0.2")] == [5, 1]
    assert admitted(rates, "10.0.0.1", ClientQuotasImage(), 1000.0, 20) == 20


def test_changed_quota_holds_from_the_next_connection_on() -> None:
    rates = ConnectionRates(2, 0)
    assert admitted(rates, "10.0.0.1", quotas(_10_0_0_1=1), 0.0, 20) == 3
    assert admitted(rates, "10.0.0.1", quotas(_10_0_0_1=1000), 0.0, 20) == 0
    assert admitted(rates, "10.0.0.1", quotas(_10_0_0_1=1000), 1.0, 20) == 1
    assert admitted(rates, "10.0.0.1", quotas(_10_0_0_1=1000), 1000.0, 20) == 20


def test_host_name_bounds_nobody_and_an_address_is_known_in_its_usual_form() -> None:
    rates = ConnectionRates(2, 0)
    assert admitted(rates, "127.0.0.1", quotas(localhost=1), 0.0, 20) == 20
    cluster = SmallCluster(brokers=0)
    cluster.write(ClientQuotaRecord((EntityData("ip", "0:0::0:1"),), "connection_creation_rate", 1.0))
    assert admitted(rates, "::1", cluster.image.client_quotas, 0.0, 20) == 3


def test_all_together_have_a_rate_of_which_a_refused_address_takes_nothing() -> None:
    rates, image = ConnectionRates(2, 5), quotas(_10_0_0_1=1)
    assert admitted(rates, "10.0.0.1", image, 0.0, 100) == 3
    assert admitted(rates, "10.0.0.2", image, 0.0, 100) == 8
    assert admitted(rates, "10.0.0.3", image, 1000.0, 100) == 5


def test_address_that_came_least_recently_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ADDRESSES_MAX", 2)
    rates, image = ConnectionRates(2, 0), quotas(default=1)
    found = [admitted(rates, address, image, 0.0, 9) for address in ("a", "b", "a", "c", "a", "b")]
    assert found == [3, 3, 0, 3, 0, 3]
