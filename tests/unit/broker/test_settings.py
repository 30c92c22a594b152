"""Settings of a broker process: what is taken, and what is refused with which sentence."""

import re
from collections.abc import Callable
from typing import cast

import pytest

from quorate.broker.settings import BrokerSettings, LifecycleSettings, parse_listeners, parse_peers
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.invalid_settings import InvalidSettings

GIVEN = ["controllers=127.0.0.1:18080"]


def settings(*overrides: str, **environment: str) -> BrokerSettings:
    variables = {f"QUORATE_BROKER_{name}": value for name, value in environment.items()}
    return load_settings(BrokerSettings, None, [*GIVEN, *overrides], variables)


def test_ids_ranges_and_single_ones_are_taken_in_order() -> None:
    assert settings("ids=11-14,20").ids == (11, 12, 13, 14, 20)
    assert settings("ids=7").ids == (7,)
    assert settings("ids=[3, 1]").ids == (3, 1)
    assert settings(IDS="1-3").ids == (1, 2, 3)


def test_racks_one_for_each_one_for_all_or_none() -> None:
    assert [settings("ids=1-2", "racks=a,").rack_of(id_) for id_ in (1, 2)] == ["a", None]
    assert [settings("ids=1-2", RACKS="a").rack_of(id_) for id_ in (1, 2)] == ["a", "a"]
    assert settings("ids=1").rack_of(1) is None


def test_peers_ranges_of_ids_with_an_address_each_are_taken() -> None:
    peers = settings("ids=1", PEERS="11-12@127.0.0.1:18091,20@localhost:18092").peers

    assert parse_peers(peers) == {11: "127.0.0.1:18091", 12: "127.0.0.1:18091", 20: "localhost:18092"}
    assert settings("ids=1").peers == ()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ([], "ids: must be set"),
        (["ids=4-2"], "ids: the range 4-2 ends before it begins, not '4-2'"),
        (["ids=1,,2"], "ids: it must be ids and ranges of ids, like 11-14,20, not '1,,2'"),
        (["ids=0-5000"], "ids: one process plays at most 1000 brokers, not '0-5000'"),
        (["ids=1-3,2"], "ids names 2 more than once"),
        (["ids=9999999999"], "ids.0: Input should be less than or equal to 2147483647"),
        (["ids=1", "racks=a,b"], "racks has 2 names for 1 brokers"),
        (["ids=1", "racks=a", "is_imported=true"], "racks cannot be set for imported brokers: they keep theirs"),
        (["ids=1", "http.host=0.0.0.0"], "http.host: it must be a loopback address, not '0.0.0.0'"),
        (["ids=1", "peers=127.0.0.1:80"], "peers: '127.0.0.1:80' is not ids, @ and host:port, like 11-13@"),
        (["ids=1", "peers=7@nowhere"], "peers: '7@nowhere' is not ids, @ and host:port"),
        (
            ["ids=1", "replicas.interval_ms=500", "replicas.lag_time_max_ms=1000"],
            "replicas: interval_ms is 500, more than a third of 1000",
        ),
        (["ids=1", "feed.wait=1"], "feed.wait: no setting has this name"),
        (
            ["ids=1", "lifecycle.session_timeout_ms=2000"],
            "lifecycle: heartbeat_interval_ms is 2000, not shorter than session_timeout_ms, 2000: no session",
        ),
        (["ids=1", "lifecycle.heartbeat_interval_ms=1"], "lifecycle.heartbeat_interval_ms: Input should be greater"),
    ],
)
def test_wrong_setting_any_is_refused_by_name_value_and_rule(overrides: list[str], sentence: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(sentence)):
        settings(*overrides)


def test_settings_that_a_program_makes_wrongly_are_an_error_of_ours() -> None:
    """By their types, as a whole, group by group, and with a group as a mapping: the same sentences."""
    made: dict[str, Callable[[], object]] = {
        r"^ids: must have at least 1, not \(\)$": lambda: BrokerSettings(ids=(), controllers=("a:1",)),
        r"^heartbeat_interval_ms: Input should be .*, not 1$": lambda: LifecycleSettings(heartbeat_interval_ms=1),
        r"^lifecycle\.retry_max_ms: .* or equal to 100, not 1$": lambda: BrokerSettings(
            ids=(1,), controllers=("a:1",), lifecycle=cast("LifecycleSettings", {"retry_max_ms": 1})
        ),
        r"^feed: no setting has this name$": lambda: LifecycleSettings(feed=1),  # type: ignore[call-arg]
        r"^listeners: 'x{100}' is not NAME://.*\.\.\..{0,80}$": lambda: BrokerSettings(
            ids=(1,), controllers=("a:1",), listeners=("x" * 100_000,)
        ),
    }
    for sentence, make in made.items():
        with pytest.raises(InvalidSettings, match=sentence) as refused:
            make()
        assert isinstance(refused.value, QuorateError)


@pytest.mark.parametrize(
    ("listeners", "said"),
    [
        ("kv://host:1", "is not NAME://host:port"),
        ("KV://host", "is not NAME://host:port"),
        ("KV://host:0", "is not NAME://host:port"),
        ("KV://host:65536", "is not NAME://host:port"),
        ("KV://" + "h" * 254 + ":1", "is not NAME://host:port"),
        ("KV://a:1,KV://b:2", "there is a listener KV already"),
        ("HTTP://a:1", "there is a listener HTTP already"),
        (",".join(f"L{at}://a:1" for at in range(17)), "has at most 16"),
    ],
)
def test_settings_listener_that_is_none_is_refused(listeners: str, said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        settings("ids=1", LISTENERS=listeners)


def test_settings_listeners_are_names_hosts_and_ports() -> None:
    made = settings("ids=1", "listeners=KV://10.0.0.5:7000, ADMIN_2://[fd00::2]:8")

    assert parse_listeners(made.listeners) == (("KV", "10.0.0.5", 7000), ("ADMIN_2", "fd00::2", 8))
