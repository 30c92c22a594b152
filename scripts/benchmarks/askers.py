"""Those who ask a cluster that is measured, and by what they show who they are: a secret, tokens or certificates."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.client.client import DEFAULT_TIMEOUT_MS, ControllerClient
from quorate.controller.identity.bearer_tokens import BROKER_TYPE, token_line
from quorate.controller.protocol.acls import AclCreation, AclOperation, CreateAclsRequest
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterQuotaOp,
    QuotaEntityPart,
)
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.metadata_log.new_files import open_new
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.benchmarks.protection import Protection, Safeguard
from quorate.scripts.certificates.authority import CertificateAuthority, Validity
from quorate.scripts.certificates.certificate_files import read_certificate_file, read_key_file
from quorate.scripts.certificates.holders import CA_KEY_NAME, CA_NAME, CertificateHolder, broker_holder, client_holder
from quorate.scripts.certificates.local_files import ADMIN_PRINCIPAL, CERTIFICATES_NAME, SECRET_NAME, local_tls
from quorate.scripts.cluster.local import LocalOptions
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.settings_text import toml_text

_CLIENT_NAME: Final = "bench"
_CLIENT_PRINCIPAL: Final = f"User:CN={_CLIENT_NAME}"
_HOSTS: Final = ("127.0.0.1",)
_SECRET_BYTES: Final = 32
_DAYS: Final = 1
#: Of others, so that decisions are found among many.
_OTHER_ACLS: Final = 1_000
#: Partitions a second that nobody reaches.
_QUOTA: Final = 1e9


@dataclass(frozen=True, slots=True)
class ShownProof:
    """The proof by which one of them shows who it is."""

    #: None: no TLS is spoken.
    tls: ssl.SSLContext | None = None
    #: Sent as ``Authorization: Bearer``; None: nothing is.
    bearer: bytes | None = None

    def client(self, url: str, timeout_ms: float = DEFAULT_TIMEOUT_MS) -> ControllerClient:
        """A client that shows it."""
        tls, secret = self.tls, self.bearer
        return ControllerClient(
            [url], timeout_ms=timeout_ms, shared_secret=secret, tls=None if tls is None else lambda: tls
        )


class Askers:
    """All that may ask one cluster. Its directory and its plan are there, its processes are not yet."""

    def __init__(
        self, directory: Path, plan: ClusterPlan, protection: Protection, broker_ids: Sequence[int] = ()
    ) -> None:
        """Make what they show.

        Args:
            directory: of the cluster; what is made here lies beside it.
            broker_ids: of brokers that will ask, each for itself.
        """
        self._directory = directory
        self._cluster_id = plan.cluster_id
        self._protection = protection & {Safeguard.TLS, Safeguard.ACLS}
        self._own = directory.parent / "askers"
        self._own.mkdir(mode=0o700)
        #: Where there are ACLs, and no certificates.
        self._tokens: dict[str, bytes] = {}
        #: Issues the certificates; None: nobody has one.
        self._authority: CertificateAuthority | None = None
        #: Of everybody, where nobody is told from another.
        self._everybody = ShownProof()
        if self._protection == {Safeguard.TLS, Safeguard.ACLS}:
            path = directory / CERTIFICATES_NAME
            issuers, key = read_certificate_file(path / CA_NAME), read_key_file(path / CA_KEY_NAME)
            self._authority = CertificateAuthority.of(issuers, key)
        elif self._protection == {Safeguard.ACLS}:
            self._make_tokens([ADMIN_PRINCIPAL, _CLIENT_PRINCIPAL, *map(_broker_principal, broker_ids)])
        elif self._protection == {Safeguard.TLS}:
            self._everybody = ShownProof(local_tls(directory)(), read_secret(directory / SECRET_NAME))

    # --- what they show ------------------------------------------------------------------------------

    @property
    def admin_bearer(self) -> bytes | None:
        """The secret or token of the administrator; None: a certificate, or nothing, is asked for."""
        return self._tokens.get(ADMIN_PRINCIPAL, self._everybody.bearer)

    def client(self) -> ShownProof:
        """A user that may create topics."""
        return self._proof(client_holder(_CLIENT_NAME), _CLIENT_PRINCIPAL)

    def broker(self, broker_id: int) -> ShownProof:
        """One of the brokers."""
        return self._proof(broker_holder(self._cluster_id, [broker_id], _HOSTS), _broker_principal(broker_id))

    def _proof(self, holder: CertificateHolder, principal: str) -> ShownProof:
        if self._authority is not None:
            return ShownProof(self._context(self._authority, holder))
        return ShownProof(bearer=self._tokens[principal]) if self._tokens else self._everybody

    def _context(self, authority: CertificateAuthority, holder: CertificateHolder) -> ssl.SSLContext:
        made = authority.issue(holder, Validity.of(_DAYS))
        ca = self._directory / CERTIFICATES_NAME / CA_NAME
        paths = TlsPaths(self._own / f"{holder.name}.pem", self._own / f"{holder.name}.key", (ca,))
        for path, content in ((paths.cert_file, made.certificate), (paths.key_file, made.key)):
            assert path is not None
            with open_new(path) as file:
                file.write(content)
        return TlsFiles(paths).as_client()

    def _make_tokens(self, principals: Sequence[str]) -> None:
        self._tokens = {principal: secrets.token_urlsafe(_SECRET_BYTES).encode() for principal in principals}
        lines = [token_line(token.decode(), principal) for principal, token in self._tokens.items()]
        with open_new(self._own / "tokens") as file:
            file.write("\n".join(lines).encode())
        with open_new(self._own / SECRET_NAME) as file:
            file.write(secrets.token_urlsafe(_SECRET_BYTES).encode())

    # --- what the cluster is told --------------------------------------------------------------------

    def options(self, options: LocalOptions) -> LocalOptions:
        """The same, with what the controllers are told of them besides what the plan says of certificates."""
        if self._protection == {Safeguard.TLS}:
            return replace(options, access={})
        if self._protection != {Safeguard.ACLS}:
            return options
        secret = {"SHARED_SECRET_FILE": str((self._own / SECRET_NAME).resolve())}
        access = {
            "authorizer": toml_text("acl"),
            "super_users": f"[{toml_text(ADMIN_PRINCIPAL)}]",
            "tokens_file": toml_text((self._own / "tokens").resolve()),
        }
        return replace(options, controller={**options.controller, **secret}, access=access)


async def protect(client: ControllerClient, protection: Protection) -> None:
    """Write the ACLs and the quota that a protection has, as the administrator.

    Raises:
        QuorateError: they were refused.
    """
    if Safeguard.ACLS in protection:
        own = [_creation(_CLIENT_PRINCIPAL, "*", operation) for operation in ("CREATE", "DESCRIBE_CONFIGS")]
        others = [_creation(f"User:CN=other-{number}", f"other-{number}", "READ") for number in range(_OTHER_ACLS)]
        created = await client.access.create_acls(CreateAclsRequest(creations=[*own, *others]))
        _check(result.error_code for result in created.results)
    if Safeguard.QUOTAS in protection:
        everybody = QuotaEntityPart(entity_type="user", entity_name=None)
        rate = AlterQuotaOp(key="controller_mutation_rate", value=_QUOTA)
        entry = AlterClientQuotasEntry(entity=[everybody], ops=[rate])
        altered = await client.access.alter_client_quotas(AlterClientQuotasRequest(entries=[entry]))
        _check(result.error_code for result in altered.entries)


def _check(outcomes: Iterable[ErrorCode]) -> None:
    refused = next((code for code in outcomes if code is not ErrorCode.NONE), None)
    if refused is not None:
        raise QuorateError(f"the cluster to be measured cannot be protected: {refused.name}")


def _creation(principal: str, name: str, operation: AclOperation) -> AclCreation:
    return AclCreation(
        resource_type="TOPIC", resource_name=name, principal=principal, operation=operation, permission_type="ALLOW"
    )


def _broker_principal(broker_id: int) -> str:
    return f"{BROKER_TYPE}:{broker_id}"
