"""Settings of a broker process about who may do what over its own HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from quorate.broker.setting_group import BrokerSettingsGroup
from quorate.controller.identity.setting_types import MappingRules, Principals
from quorate.controller.principals.mapping_rules import DEFAULT_RULES


class BrokerAccessSettings(BrokerSettingsGroup):
    """Permissions over the process's own HTTP API (docs/security.md), by the ACLs of the cluster that it follows."""

    authorizer: Literal["none", "acl"] = "none"
    """none: everybody on this machine may read, and what changes something asks for the secret in `shared_secret_file`.
    acl: each request is made by a principal, as the controllers know it (certificate, token), who may do what the ACLs
    say; the secret is then this process's own token, and opens nothing here."""
    super_users: Principals = ()
    """Principals who may do everything, whatever the ACLs say: the same as the controllers'."""
    allow_everyone_if_no_acl_found: bool = False
    """Whether a resource that no ACL covers is everybody's: the same as the controllers'. Before this process has read
    any ACLs nothing is."""
    tokens_file: Path | None = None
    """File of tokens by which clients and other brokers are known, of lines `sha256:HEX Type:name`, for its owner alone
    (mode 600): a copy of the controllers'. It is read again within seconds of a change; a wrong one is not used."""
    principal_mapping_rules: MappingRules = DEFAULT_RULES
    """Rules that make the name of a `User` out of the distinguished name of a client's certificate: the same as the
    controllers'."""
    proxies: Principals = ()
    """Principals who may ask in the name of any other: the same as the controllers'."""

    insecure: bool = False
    """The secret or token in `shared_secret_file` is sent to controllers on other machines without TLS, too: whoever is
    on the network can read it there. Otherwise a process that would have to does not start."""

    @model_validator(mode="after")
    def _check_authorizer(self) -> Self:
        unused = sorted(self.model_fields_set - {"authorizer", "insecure"})
        if self.authorizer == "none" and unused:
            rule = "set access.authorizer to acl, or leave them out"
            raise ValueError(f"{', '.join(unused)}: nobody asks for them while authorizer is none: {rule}")
        return self
