"""Beyond loopback a controller starts with TLS and an authorizer, or by a word of its operator that the log repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from quorate.controller.process.server import warn_of_openness
from quorate.controller.process.settings import ControllerSettings

TLS = {"cert_file": "c.pem", "key_file": "c.key", "ca_files": ["ca.pem"]}
ACL = {"authorizer": "acl", "super_users": ["User:root"]}
INSECURE = {"insecure": True}
FILES = "tls.cert_file, tls.key_file and tls.ca_files"
EXCEPTION = "or, where the network is trusted with everything, access.insecure = true"


def settings(tmp_path: Path, bind: str, **groups: Any) -> ControllerSettings:
    values = {
        "node_id": 1,
        "directory": tmp_path,
        "shared_secret_file": tmp_path / "secret",
        "voters": [{"id": 1, "quorum": "127.0.0.1:19001", "http": "127.0.0.1:18000"}],
        "http": {"bind": bind},
        "quorum": {"kraft_version": 0},
    }
    return ControllerSettings.model_validate(values | groups)


@pytest.mark.parametrize("bind", ["0.0.0.0:18001", "192.0.2.7:18001", "[::]:18001", "controller.example:18001"])
@pytest.mark.parametrize(
    ("groups", "lacking"),
    [
        ({}, f'{FILES}; access.authorizer = "acl" with access.super_users; {EXCEPTION}'),
        ({"tls": TLS}, f'access.authorizer = "acl" with access.super_users; {EXCEPTION}'),
        ({"access": ACL}, f"{FILES}; {EXCEPTION}"),
        ({"access": INSECURE, "shared_secret_file": None}, "shared_secret_file"),
    ],
)
def test_address_beyond_loopback_needs_tls_and_an_authorizer(
    tmp_path: Path, bind: str, groups: dict[str, Any], lacking: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(tmp_path, bind, **groups)
    (error,) = refused.value.errors()
    assert error["msg"] == f"Value error, {bind} is no loopback address, which needs {lacking}"


@pytest.mark.parametrize(
    ("bind", "groups", "events"),
    [
        ("0.0.0.0:18001", {"tls": TLS, "access": ACL}, []),
        ("192.0.2.7:18001", {"access": INSECURE}, ["http.plaintext", "http.no_authorizer"]),
        ("192.0.2.7:18001", {"access": INSECURE | ACL}, ["http.plaintext"]),
        ("192.0.2.7:18001", {"access": INSECURE, "tls": TLS}, ["http.no_authorizer"]),
        ("127.0.0.1:18001", {}, []),
        ("127.0.0.1:18001", {"access": INSECURE}, []),
    ],
)
def test_what_is_open_to_other_machines_is_said_in_the_log(
    tmp_path: Path, bind: str, groups: dict[str, Any], events: list[str]
) -> None:
    made = settings(tmp_path, bind, **groups)
    with capture_logs() as said:
        warn_of_openness(made)
    assert [(line["event"], line["log_level"], line["http"]) for line in said] == [
        (event, "warning", bind) for event in events
    ]


def test_addresses_of_the_other_voters_count_for_they_are_sent_what_is_secret(tmp_path: Path) -> None:
    voters = [
        {"id": 1, "quorum": "127.0.0.1:1", "http": "127.0.0.1:2"},
        {"id": 2, "quorum": "127.0.0.1:3", "http": "10.0.0.2:80"},
    ]
    with pytest.raises(ValidationError, match=r"10\.0\.0\.2:80 is no loopback address"):
        settings(tmp_path, "127.0.0.1:18001", voters=voters)
