"""Settings of a controller about who may do what over HTTP, and how much of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from quorate.controller.decisions.origin import check_principal
from quorate.controller.identity.setting_types import JwtAlgorithm, MappingRules, NamedUids, Principals
from quorate.controller.principals.mapping_rules import DEFAULT_RULES
from quorate.controller.process.setting_group import Group
from quorate.metadata_log.errors import ApiError

_Text = Annotated[str, Field(min_length=1, max_length=2_048)]


class JwtSettings(Group):
    """JSON Web Tokens of an OpenID Connect issuer, as `Authorization: Bearer`. Set all of `issuer`, `audience` and one
    of `jwks_file` and `jwks_url`, or none of them: then no such token is anybody's."""

    issuer: _Text | None = None
    """What the claim `iss` must be, letter by letter (Kafka's sasl.oauthbearer.expected.issuer)."""
    audience: _Text | None = None
    """What the claim `aud` must be or hold (sasl.oauthbearer.expected.audience)."""
    jwks_file: Path | None = None
    """The issuer's public keys (JWKS), 256 KiB at most; read again when it has changed."""
    jwks_url: Annotated[str, Field(pattern=r"^https://[!-~]+$", max_length=2_048)] | None = None
    """Where the issuer has them (sasl.oauthbearer.jwks.endpoint.url), by https. Asked every ten minutes, and, at most
    each 30 s, when it has not answered or a token names a key that is not among them. An answer without a key that can
    be used means that there is none."""
    jwks_kept_ms: int = Field(default=21_600_000, ge=60_000, le=2_592_000_000)
    """While `jwks_url` does not answer, the keys of its last answer hold for so long, and `status` is degraded."""
    jwks_ca_file: Path | None = None
    """CAs of the server at `jwks_url`, in PEM; unset: those that the system trusts."""
    algorithms: Annotated[tuple[JwtAlgorithm, ...], Field(min_length=1)] = ("RS256", "ES256")
    """Of signatures. None is by a secret, and none is no signature."""
    principal_claim: _Text = "sub"
    """The claim that is the name of the `User`, behind `principal_prefix` (sasl.oauthbearer.sub.claim.name)."""
    principal_prefix: Annotated[str, Field(max_length=200)] | None = None
    """The beginning of that name, so that no subject is anybody whom passwords, certificates or files make; unset:
    `issuer` and `#`. Kafka has none, which is `""`: then the issuer says who each user is, super users too."""
    clock_skew_ms: int = Field(default=30_000, ge=0, le=300_000)
    """So far the clocks of issuer and controllers may be apart (sasl.oauthbearer.clock.skew.seconds)."""

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if not self.model_fields_set:
            return self
        if self.issuer is None or self.audience is None:
            raise ValueError("tokens of an issuer need both issuer and audience")
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("tokens of an issuer need one of jwks_file and jwks_url, and not both")
        for_url = sorted(self.model_fields_set & {"jwks_ca_file", "jwks_kept_ms"})
        if for_url and self.jwks_url is None:
            raise ValueError(f"{' and '.join(for_url)}: for jwks_url alone")
        try:
            check_principal(f"User:{self.prefix}x")
        except ApiError as error:
            raise ValueError(f"issuer, or principal_prefix, begins no name: {error.message}") from None
        return self

    @property
    def prefix(self) -> str:
        """The beginning of all names of users."""
        return f"{self.issuer}#" if self.principal_prefix is None else self.principal_prefix


class AccessSettings(Group):
    """Permissions over HTTP (docs/security.md). Every controller decides by its own settings: give all the same."""

    authorizer: Literal["none", "acl"] = "none"
    """none: whoever has the shared secret, or without one is on this machine, may do everything. acl: each request is
    made by a principal, who may do what the ACLs in the log say (Kafka's StandardAuthorizer); the shared secret is then
    the controllers' alone, who show each other by it who they are."""
    super_users: Principals = ()
    """Principals who may do everything, whatever the ACLs say, such as `User:admin` (Kafka's super.users)."""
    allow_everyone_if_no_acl_found: bool = False
    """Whether a resource that no ACL covers is everybody's (Kafka's allow.everyone.if.no.acl.found)."""
    tokens_file: Path | None = None
    """File of tokens by which clients and brokers are known, of lines `sha256:HEX Type:name`, for its owner alone (mode
    600): `quorate bearer-tokens add`. When it has changed it is read again within seconds; a wrong one is not used."""
    login_mechanisms: Annotated[tuple[Literal["SCRAM-SHA-256", "SCRAM-SHA-512"], ...], Field(max_length=2)] = ()
    """By which clients may log in with a user's password (`quorate users set`) or a delegation token, at `/v1/login`
    (Kafka's sasl.enabled.mechanisms). With them whoever has ALTER on the cluster can be any user, super users too: by
    a password that he sets."""
    login_lifetime_ms: int = Field(default=900_000, ge=1_000, le=86_400_000)
    """A login lasts this long; clients renew it by themselves (Kafka's connections.max.reauth.ms)."""
    jwt: JwtSettings = Field(default_factory=JwtSettings)
    principal_mapping_rules: MappingRules = DEFAULT_RULES
    """Rules that make the name of a `User` out of the distinguished name of a client's certificate (Kafka's
    ssl.principal.mapping.rules), for `tls.client_auth` optional or required. Certificates of nodes need none: they say
    in a URI which nodes they are."""
    proxies: Principals = ()
    """Principals who may ask in the name of any other, by X-Quorate-Principal, such as a gateway that has found out who
    its clients are. They are trusted like super users."""

    uids: NamedUids = ()
    """Principals of users of this machine who ask through `http.unix_socket`, as `1000=User:ana`. Others are
    `User:uid-N`; the user that the process runs as may do everything, unless he is named here."""
    insecure: bool = False
    """Addresses beyond loopback may be used without TLS, or without an authorizer: whoever is on the network can read
    what goes over it, secrets and tokens among it, and change everything. For networks that are trusted with that; the
    log says so at the start."""

    @model_validator(mode="after")
    def _check_authorizer(self) -> Self:
        if self.authorizer == "none":
            unused = sorted(self.model_fields_set - {"authorizer", "insecure", "uids"})
            if unused:
                rule = "set access.authorizer to acl, or leave them out"
                raise ValueError(f"{', '.join(unused)}: nobody asks for them while authorizer is none: {rule}")
        elif not self.super_users:
            raise ValueError("authorizer acl needs super_users: nobody else may write the first ACL")
        return self


class TokenSettings(Group):
    """Delegation tokens."""

    secret_key_file: Path | None = None
    """File with the secret that tokens are made with, the same on all controllers and brokers (Kafka's
    delegation.token.secret.key): at least 32 characters, for its owner alone (mode 600). Whoever has it can make up a
    token. Tokens that were made with a secret in a second line are known, too; read again as `shared_secret_file`.
    Unset: there are none."""
    max_lifetime_ms: int = Field(default=7 * 24 * 3_600_000, ge=1, le=2**50)
    """A token cannot be renewed beyond this age (Kafka's delegation.token.max.lifetime.ms)."""
    renew_period_ms: int = Field(default=24 * 3_600_000, ge=1, le=2**50)
    """A token ends this long after it was made or renewed, unless it is renewed (Kafka's
    delegation.token.expiry.time.ms)."""
    sweep_interval_ms: int = Field(default=3_600_000, ge=100, le=86_400_000)
    """Tokens that have ended are removed this often (Kafka's delegation.token.expiry.check.interval.ms)."""
    count_max: int = Field(default=10_000, ge=1, le=1_000_000)
    """Tokens that the whole cluster may have: one more is refused (POLICY_VIOLATION). Those that have ended make room
    at once. The active controller's setting counts, and that of `per_owner_max`: give all the same."""
    per_owner_max: int = Field(default=100, ge=1, le=1_000_000)
    """Tokens that one owner may have, refused alike."""


class QuotaSettings(Group):
    """Client quotas, which stand in the log: how they are counted. For `controller_mutation_rate` the settings of the
    active controller hold, for `connection_creation_rate` those of each one for itself."""

    window_count: int = Field(default=11, ge=1, le=3_600)
    """Who has not used his rate for a while may use at once what it gives in so many windows
    (Kafka's controller.quota.window.num)."""
    window_seconds: int = Field(default=1, ge=1, le=3_600)
    """... each so many seconds long (controller.quota.window.size.seconds)."""


class AuditSettings(Group):
    """Accounts of who asked, beside those of changes and refusals, in `audit/` of the metadata directory."""

    reads: bool = False
    """Whether reads that are answered are written down, too: who read what, counted by kind within half a second or so.
    The controller that answers writes two lines a second in the long run, 120 at once, and keeps 8 MB of them."""
