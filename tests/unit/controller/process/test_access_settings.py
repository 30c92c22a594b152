"""Settings of access: what does not go together is refused at the start, and a file of tokens is read whole or not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from quorate.controller.identity.bearer_tokens import FILE_BYTES_MAX, token_line
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.process.access_parts import access_parts
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.invalid_settings import InvalidSettings
from tests.unit.controller.identity.issuer.test_tokens import KEYS, signed

FILE = """
node_id = 1
directory = "state"
shared_secret_file = "secret"
[[voters]]
id = 1
quorum = "127.0.0.1:19001"
http = "127.0.0.1:18001"
directory_id = "AAAAAAAAAAAAAAAAAAAAZQ"
"""
ACL = """
[access]
authorizer = "acl"
super_users = ["User:root"]
"""


def load(tmp_path: Path, text: str, *overrides: str) -> ControllerSettings:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    return load_settings(ControllerSettings, path, overrides, {})


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def private(path: Path, text: str) -> Path:
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (("access.super_users=[]",), "access: authorizer acl needs super_users"),
        (
            ("access.authorizer=none", "access.tokens_file=/etc/tokens"),
            "access: super_users, tokens_file: nobody asks for them while authorizer is none: set access.authorizer",
        ),
        (("access.authorizer=rbac",), "access.authorizer"),
        (('access.super_users=["root"]',), "a principal is Type:name"),
        (('access.proxies=["User:"]',), "a principal is Type:name"),
        (("access.principal_mapping_rules=RULE:(/x/",), "access.principal_mapping_rules"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(
    tmp_path: Path, overrides: tuple[str, ...], says: str
) -> None:
    with pytest.raises(InvalidSettings, match=says):
        load(tmp_path, FILE + ACL, *overrides)


def test_authorizer_without_a_secret_for_the_controllers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="needs a shared_secret_file: controllers know each other by it"):
        load(tmp_path, FILE.replace('shared_secret_file = "secret"', "") + ACL)


def test_parts_without_an_authorizer_are_those_of_the_secret(tmp_path: Path) -> None:
    without = access_parts(load(tmp_path, FILE), "cluster", lambda: (b"s" * 32,), None)
    assert (without.authorizer, without.seals) == (None, None)
    parts = access_parts(load(tmp_path, FILE + ACL), "cluster", lambda: (b"s" * 32,), None)
    assert (parts.authorizer is not None, parts.seals is not None) == (True, True)
    assert parts.super_users == {"User:root"}


@pytest.mark.parametrize(
    ("client_auth", "is_believed"), [(None, True), ("none", True), ("optional", False), ("required", False)]
)
def test_seal_is_believed_without_a_certificate_where_controllers_show_none(
    tmp_path: Path, client_auth: str | None, is_believed: bool
) -> None:
    """None: they speak no TLS at all, whatever clients might show."""
    tls = f'[tls]\ncert_file = "c"\nkey_file = "k"\nca_files = ["a"]\nclient_auth = "{client_auth}"\n'
    settings = load(tmp_path, FILE + ACL + ("" if client_auth is None else tls))
    parts = access_parts(settings, "cluster", lambda: (b"s" * 32,), None)
    assert parts.seals is not None
    fields = {"authorization": parts.seals.seal("GET", "/v1/topics", {}, b"")}
    claims = RequestClaims("GET", "/v1/topics", "10.0.0.1", fields)
    if is_believed:
        assert parts.authentication.identify(claims).identity.proof == "seal"
    else:
        with pytest.raises(NoAccess, match="counts only on a connection with its certificate"):
            parts.authentication.identify(claims)


def test_file_of_tokens_is_read_again_when_it_has_changed_and_looked_at_once_a_second(tmp_path: Path) -> None:
    clock, file = Clock(), private(tmp_path / "tokens", f"{token_line('a', 'User:ana')}\n")
    tokens = TokensFile(file, clock)
    assert (tokens.generation, tokens.find("a"), tokens.find("b")) == (0, Identity("User:ana", "token"), None)
    private(file, f"{token_line('b', 'User:ben')}\n# another size\n")
    assert tokens.find("b") is None
    clock.now += 1.0
    assert (tokens.generation, tokens.find("a"), tokens.find("b")) == (1, None, Identity("User:ben", "token"))


@pytest.mark.parametrize("wrong", ["rubbish\n", None])
def test_file_of_tokens_that_went_wrong_is_not_used(tmp_path: Path, wrong: str | None) -> None:
    clock, file = Clock(), private(tmp_path / "tokens", f"{token_line('a', 'User:ana')}\n")
    tokens = TokensFile(file, clock)
    private(file, "") if wrong is None else private(file, wrong)
    if wrong is None:
        file.unlink()
    clock.now += 1.0
    assert (tokens.generation, tokens.find("a")) == (0, Identity("User:ana", "token"))


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("", 0o644, "has mode 0644"),
        ("rubbish", 0o600, "line 1 is not"),
        ("#" * (FILE_BYTES_MAX + 1), 0o600, "more than"),
        (None, 0o600, "cannot be read"),
    ],
)
def test_file_of_tokens_that_cannot_be_used_is_refused_at_the_start(
    tmp_path: Path, text: str | None, mode: int, says: str
) -> None:
    file = tmp_path / "tokens"
    if text is not None:
        os.chmod(private(file, text), mode)
    with pytest.raises(InvalidSettings, match=f"access.tokens_file .*{says}"):
        TokensFile(file)


JWT = ('access.jwt.issuer="https://issuer"', 'access.jwt.audience="quorate"')


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (JWT[:1], "both issuer and audience"),
        (JWT, "one of jwks_file and jwks_url"),
        ((*JWT, "access.jwt.jwks_file=a", 'access.jwt.jwks_url="https://issuer/keys"'), "and not both"),
        ((*JWT, 'access.jwt.jwks_url="http://issuer/keys"'), "jwks_url"),
        ((*JWT, "access.jwt.jwks_file=a", "access.jwt.jwks_ca_file=b"), "jwks_ca_file: for jwks_url alone"),
        ((*JWT, "access.jwt.jwks_file=a", "access.jwt.jwks_kept_ms=60000"), "jwks_kept_ms: for jwks_url alone"),
        (
            (*JWT, "access.jwt.jwks_file=a", 'access.jwt.principal_prefix="ä"'),
            "begins no name: a principal is Type:name",
        ),
        (
            (*JWT, "access.jwt.jwks_file=a", f'access.jwt.issuer="{"a" * 256}"'),
            "begins no name: a principal has at most",
        ),
        ((*JWT, "access.jwt.jwks_file=a", 'access.jwt.algorithms=["HS256"]'), "algorithms"),
        ((*JWT, "access.jwt.jwks_file=a", 'access.jwt.algorithms=["none"]'), "algorithms"),
    ],
)
def test_settings_of_an_issuer_that_do_not_go_together_are_refused(
    tmp_path: Path, overrides: tuple[str, ...], says: str
) -> None:
    with pytest.raises(InvalidSettings, match=says):
        load(tmp_path, FILE + ACL, *overrides)


@pytest.mark.parametrize(("more", "name"), [((), "https://issuer#ana"), (('access.jwt.principal_prefix=""',), "ana")])
def test_token_of_the_issuer_in_the_settings_is_its_subject(tmp_path: Path, more: tuple[str, ...], name: str) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": KEYS}))
    settings = load(tmp_path, FILE + ACL, *JWT, f'access.jwt.jwks_file="{keys}"', *more)
    parts = access_parts(settings, "cluster", lambda: (b"s" * 32,), None)
    now_s = int(time.time())
    ana = Identity(f"User:{name}", "jwt", ends_ms=(now_s + 60) * 1000 + settings.access.jwt.clock_skew_ms)
    for exp, found in ((now_s + 60, ana), (now_s - 60, None)):
        claims = RequestClaims("GET", "/v1/topics", "10.0.0.1", {"authorization": f"Bearer {signed(exp=exp)}"})
        if found is None:
            with pytest.raises(NoAccess, match="nobody has this token"):
                parts.authentication.identify(claims)
        else:
            assert parts.authentication.identify(claims).identity == found
    assert set(parts.kept) == {"access.tokens_file", "access.jwt.jwks_file"}
