"""Tokens of an issuer: only one that says all that it must, signed by a key of the issuer, is anybody's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.issuer.key_sets import JWKS_BYTES_MAX, JWKS_KEYS_MAX, InvalidJwks, IssuerKeys
from quorate.controller.identity.issuer.tokens import JWT_CHARS_MAX, SECONDS_MAX, JwtRules, JwtTokens

RULES = JwtRules("https://issuer", "quorate", ("RS256", "ES256"), "sub", "https://issuer#", 30_000)
NOW_S = 1_700_000_000
RSA, EC = rsa.generate_private_key(65_537, 2_048), ec.generate_private_key(ec.SECP256R1())
WEAK = rsa.generate_private_key(65_537, 1_024)
PUBLIC_PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
OCT = {"kty": "oct", "kid": "shared", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "alg": "HS256"}


def public(key: Any, kid: str, **more: str) -> dict[str, Any]:
    """A key as sets have it."""
    algorithm = (
        jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
    )
    return algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid} | more


#: Until the token's end, by the clock that may be furthest behind.
ANA = Identity("User:https://issuer#ana", "jwt", ends_ms=(NOW_S + 60) * 1000 + RULES.clock_skew_ms)

KEYS = [
    public(RSA, "r", alg="RS256"),
    public(EC, "e"),
    OCT,
    public(RSA, "enc", use="enc"),
    public(RSA, "wrap") | {"key_ops": ["wrapKey", "encrypt"]},
    public(RSA, "odd") | {"key_ops": "verify"},
    public(RSA, "p", alg="PS256"),
]


class Source:
    """Keys that a test changes."""

    def __init__(self) -> None:
        self.keys = IssuerKeys.parse(json.dumps({"keys": KEYS}).encode())
        self.generation = 0
        self.wanted: list[str] = []

    def __call__(self) -> IssuerKeys:
        return self.keys

    def want(self, key_id: str) -> None:
        self.wanted.append(key_id)


class Stage:
    """Tokens of the issuer by a clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = float(NOW_S)
        self.source = Source()
        self.tokens = JwtTokens(RULES, self.source, lambda: self.now_s * 1000)

    def why_not(self, token: str) -> str:
        with pytest.raises(NoAccess) as refused:
            self.tokens.find(token)
        assert "nobody has this token" in refused.value.message
        return refused.value.noted


def signed(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "r", **changes: Any) -> str:
    """A token that is right, but for what is changed; None: without that claim."""
    said = {"iss": "https://issuer", "aud": "quorate", "sub": "ana", "exp": NOW_S + 60} | changes
    claims = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={} if kid is None else {"kid": kid})


@pytest.mark.parametrize(
    "token",
    [signed(), signed(EC, "ES256", "e"), signed(aud=["other", "quorate"]), signed(nbf=NOW_S + 29)],
    ids=range(4),
)
def test_right_token_is_its_subject(token: str) -> None:
    assert Stage().tokens.find(token) == ANA


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (signed(PUBLIC_PEM.hex(), "HS256"), "alg value is not allowed"),
        (signed("secret-secret-secret-secret-secret", "HS256", "shared"), "no key 'shared'"),
        (signed(RSA, "RS384"), "alg value is not allowed"),
        (signed(RSA, "PS256", "p"), "alg value is not allowed"),
        (signed(rsa.generate_private_key(65_537, 2_048)), "ignature"),
        (signed(RSA, "RS256", "e"), "lgorithm"),
        (signed(kid="enc"), "no key 'enc'"),
        (signed(kid="wrap"), "no key 'wrap'"),
        (signed(kid="odd"), "no key 'odd'"),
        (signed(kid=None), "no key 'None'"),
        (signed(iss="https://other"), "issuer"),
        (signed(aud="other"), "udience"),
        (signed(aud=None), "aud"),
        (signed(exp=None), "exp"),
        (signed(sub=None), "sub"),
        (signed(exp=NOW_S - 30), "its exp is 30 s ago"),
        (signed(nbf=NOW_S + 31), "its nbf is 31 s ahead"),
        (signed(iat=NOW_S + 31), "its iat is 31 s ahead"),
        (signed(exp="soon"), "exp"),
        (signed(sub="a" * 300), "256 characters"),
        (signed(sub=""), "its sub is no text, or an empty one"),
        (signed(sub="ana "), "Type:name"),
    ],
    ids=range(22),
)
def test_wrong_token_is_nobodys_and_only_the_log_says_why(token: str, says: str) -> None:
    assert says in Stage().why_not(token)


def test_token_that_has_ended_lasts_for_as_long_as_clocks_may_be_apart() -> None:
    found = Stage().tokens.find(signed(exp=NOW_S - 29))
    assert found is not None
    assert found.ends_ms == (NOW_S + 1) * 1000


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "at", [10**400, -(10**400), 1e308, float("inf"), float("nan"), True, [], SECONDS_MAX + 1, -1], ids=range(9)
)
def test_time_that_is_none_is_refused_and_no_calculation_fails_on_it(claim: str, at: Any) -> None:
    assert f"its {claim} is no number of seconds" in Stage().why_not(signed(**{claim: at}))


@pytest.mark.parametrize("sub", ["admin", "CN=admin,O=x", "uid-0", "ANONYMOUS", "Controller:1"])
def test_subject_is_nobody_of_another_kind_unless_the_settings_say_so(sub: str) -> None:
    stage = Stage()
    found = stage.tokens.find(signed(sub=sub))
    assert found is not None
    assert found.principal == f"User:https://issuer#{sub}"
    plain = JwtTokens(replace(RULES, principal_prefix=""), stage.source, lambda: NOW_S * 1000).find(signed(sub=sub))
    assert plain is not None
    assert plain.principal == f"User:{sub}"


def test_changed_token_is_nobodys() -> None:
    head, body, signature = signed().split(".")
    other = signed(sub="root").split(".")[1]
    assert "ignature" in Stage().why_not(f"{head}.{other}.{signature}")
    assert Stage().why_not(f"{body}.{body}.{signature}")


@pytest.mark.parametrize(
    "token",
    ["", "a.b", signed(None, "none"), "qlogin1.user.SCRAM-SHA-256.1.YQ.00", "a.b." + "c" * JWT_CHARS_MAX],
    ids=range(5),
)
def test_what_has_another_form_is_left_to_others(token: str) -> None:
    assert Stage().tokens.find(token) is None


def test_generation_moves_when_a_token_that_was_found_ends_or_the_keys_change() -> None:
    s = Stage()
    before = s.tokens.generation
    assert s.tokens.find(signed()) == ANA
    s.now_s += 89.9
    assert s.tokens.generation == before
    s.now_s += 0.1
    assert s.tokens.generation == before + 1
    assert "its exp" in s.why_not(signed())
    s.source.generation += 1
    assert s.tokens.generation == before + 2


def test_key_that_is_not_there_is_asked_for_and_known_from_then_on() -> None:
    s = Stage()
    new = rsa.generate_private_key(65_537, 2_048)
    assert s.why_not(signed(new, kid="new"))
    assert s.source.wanted == ["new"]
    s.source.keys = IssuerKeys.parse(json.dumps({"keys": [public(new, "new")]}).encode())
    assert s.tokens.find(signed(new, kid="new")) == ANA
    assert s.why_not(signed()), "the old key is gone"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "JSON of the form"),
        (b"[]", "JSON of the form"),
        (b'{"keys": 1}', "list"),
        (b"[" * 100_000, "JSON of the form"),
        (b" " * (JWKS_BYTES_MAX + 1), "bytes"),
        (json.dumps({"keys": [OCT] * (JWKS_KEYS_MAX + 1)}).encode(), "list of at most"),
    ],
    ids=range(6),
)
def test_what_is_no_key_set_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InvalidJwks, match=says):
        IssuerKeys.parse(data)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [OCT],
        [{"kty": "RSA", "kid": "x", "n": "", "e": ""}, 1, {"kid": 1}],
        [public(rsa.generate_private_key(65_537, 2_047), "weak"), public(WEAK, "weaker", alg="PS256")],
        [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA)) | {"kid": "a private one", "key_ops": ["verify"]}],
    ],
    ids=range(5),
)
def test_set_may_have_no_key_that_could_be_used(keys: list[Any]) -> None:
    assert IssuerKeys.parse(json.dumps({"keys": keys}).encode()) == IssuerKeys({})


def test_sets_are_equal_where_they_say_the_same_of_the_same_keys() -> None:
    def of(*keys: dict[str, Any]) -> IssuerKeys:
        return IssuerKeys.parse(json.dumps({"keys": keys}).encode())

    first, other = public(RSA, "r"), public(EC, "r")
    assert of(first, OCT) == of(dict(reversed(first.items())))
    assert of(first) != of(other)
    assert of(first) != of(first | {"alg": "PS256"})
    assert of(first) != of(first | {"kid": "s"})


@pytest.mark.parametrize("strange", [{"kty": "oct"}, {"kty": "OKP", "alg": "none"}, {"kty": "RSA"}, {"kty": ["EC"]}])
def test_key_that_is_none_does_no_harm_to_the_others_of_its_set(strange: dict[str, object]) -> None:
    found = IssuerKeys.parse(json.dumps({"keys": [{"kid": "strange", **strange}, *KEYS]}).encode())
    assert (found.find("strange"), len(found)) == (None, 3)
