"""With which TLS a command asks: what the environment names, or, of the local cluster alone, its administrator's."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.certificates.local_files import admin_paths
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.plan import PLAN_NAME
from quorate.scripts.terminal.places import controllers
from quorate.scripts.terminal.places.controllers import find_controllers, find_tls, full_urls
from tests.integration.made_certificates import authority, issued, written

LOCAL = "https://127.0.0.1:20001"
ELSEWHERE = "http://10.0.0.1:20001"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("QUORATE_CA_FILE", "QUORATE_CERT_FILE", "QUORATE_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)


def trusted_by(context: ssl.SSLContext) -> list[bytes]:
    return context.get_ca_certs(binary_form=True)


def test_local_cluster_is_asked_as_its_administrator_and_nobody_else_is() -> None:
    make_fresh(Path("var"), Ports.from_base(20_000), 1, 1, is_secured=True)
    assert find_controllers(None) == (LOCAL,)
    assert full_urls(["127.0.0.1:20001", "127.0.0.1:20002", "10.0.0.1:20001", "http://127.0.0.1:20001"]) == (
        LOCAL,
        "https://127.0.0.1:20002",
        ELSEWHERE,
        "http://127.0.0.1:20001",
    )
    local = find_tls([ELSEWHERE, LOCAL])
    assert local is not None
    assert trusted_by(local()) == [ssl.PEM_cert_to_DER_cert(admin_paths(Path("var")).ca_files[0].read_text())]
    assert find_tls([ELSEWHERE]) is None


def test_who_says_otherwise_who_he_is_shows_no_certificate_of_his(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would count before his token or password, and he would be asked as whom he is not."""
    make_fresh(Path("var"), Ports.from_base(20_000), 1, 0, is_secured=True)
    shown: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def note(context: ssl.SSLContext, certfile: str, *rest: Any, **more: Any) -> None:
        shown.append(certfile)
        load(context, certfile, *rest, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", note)
    trusting = find_tls([LOCAL], is_administrator=False)
    assert trusting is not None
    assert trusted_by(trusting()) == [ssl.PEM_cert_to_DER_cert(admin_paths(Path("var")).ca_files[0].read_text())]
    assert shown == []
    administrator = find_tls([LOCAL])
    assert administrator is not None
    administrator()
    assert shown


def test_certificate_beside_a_token_is_shown_too_and_it_is_said_which_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = written(Path(), issued(authority()), authority())
    monkeypatch.setenv("QUORATE_CERT_FILE", str(paths.cert_file))
    monkeypatch.setenv("QUORATE_KEY_FILE", str(paths.key_file))
    controllers._say_that_two_are_shown.cache_clear()
    find_tls([ELSEWHERE])
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert find_tls([ELSEWHERE], is_administrator=False) is not None
    assert capsys.readouterr().err.count("both shown: where an authorizer decides, the certificate says who asks") == 1


def test_what_the_environment_names_goes_before_the_local_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    make_fresh(Path("var"), Ports.from_base(20_000), 1, 0, is_secured=True)
    named = authority().pair.certificate
    Path("named.pem").write_bytes(named)
    monkeypatch.setenv("QUORATE_CA_FILE", "named.pem")
    asked = find_tls([LOCAL])
    assert asked is not None
    assert trusted_by(asked()) == [ssl.PEM_cert_to_DER_cert(named.decode())]
    assert full_urls(["10.0.0.1:20001"]) == ("https://10.0.0.1:20001",)


@pytest.mark.parametrize("is_damaged", [True, False])
def test_local_cluster_that_has_none_or_cannot_be_read_gives_no_certificates(is_damaged: bool) -> None:
    make_fresh(Path("var"), Ports.from_base(20_000), 1, 0)
    if is_damaged:
        (Path("var") / PLAN_NAME).write_text("{")
    assert find_tls([LOCAL, "http://127.0.0.1:20001"]) is None
    assert full_urls(["127.0.0.1:20001"]) == ("http://127.0.0.1:20001",)
