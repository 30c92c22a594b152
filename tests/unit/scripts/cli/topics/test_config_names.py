"""Slips in the names of configs: pointed out where a name is known, and nothing is said of what may be meant so."""

from __future__ import annotations

import pytest

from quorate.controller.protocol.configs import ResourceTypeName
from quorate.scripts.cli.topics.config_names import point_out_slips


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("TOPIC", "retention.mss", "retention.ms"),
        ("TOPIC", "flush.sm", "flush.ms"),
        ("TOPIC", "cleanup.polcy", "cleanup.policy"),
        ("BROKER", "log.retention.hourss", "log.retention.hours"),
        ("GROUP", "consumer.session.timout.ms", "consumer.session.timeout.ms"),
        ("CLIENT_METRICS", "intervall.ms", "interval.ms"),
    ],
)
def test_slip_is_pointed_out(kind: ResourceTypeName, name: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    point_out_slips(kind, [name, name])
    what = kind.lower().replace("_", " ")
    assert capsys.readouterr().err == f"quorate: no {what} config is known as {name}: did you mean {meant}?\n"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("TOPIC", ["retention.ms", "nope"]),
        ("BROKER", ["log.retention.hours", "my.plugin.url", "sasl.jaas.config", "delegation.token.secret.key"]),
        # Secrets, whose names are not among those that are shown.
        ("BROKER", [f"ssl.{name}" for name in ("key.password", "keystore.key", "keystore.password")]),
        ("BROKER", ["ssl.truststore.password", "ssl.truststore.certificates", "ssl.keystore.certificate.chain"]),
        ("BROKER", ["listener.name.internal.ssl.keystore.location", "listener.name.internal.sasl.jaas.config"]),
    ],
)
def test_nothing_is_said_of_names_that_are_right_or_may_be(
    kind: ResourceTypeName, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    point_out_slips(kind, names)
    assert capsys.readouterr().err == ""
