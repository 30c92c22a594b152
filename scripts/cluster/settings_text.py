"""Settings files of controllers and brokers, as their processes read them (docs/configuration.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorate.controller.api.tls_files import TlsPaths


@dataclass(frozen=True, slots=True)
class VoterSettings:
    """One controller in everybody's settings."""

    id: int
    #: host:port for the other controllers, and for clients.
    quorum: str
    http: str
    directory_id: str


@dataclass(frozen=True, slots=True)
class ControllerSettingsText:
    """The content of a controller's settings file."""

    node_id: int
    cluster_id: str
    directory: Path
    #: All controllers, this one included.
    voters: Sequence[VoterSettings]
    secret_file: Path | None = None
    #: Settings in groups: their values as TOML.
    groups: dict[str, dict[str, str]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"node_id = {self.node_id}", f"cluster_id = {toml_text(self.cluster_id)}"]
        lines.append(f"directory = {toml_text(self.directory)}")
        if self.secret_file is not None:
            lines.append(f"shared_secret_file = {toml_text(self.secret_file)}")
        lines += ["voters = [", *(f"    {_voter(voter)}," for voter in self.voters), "]"]
        for name, values in self.groups.items():
            lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
        return "\n".join(lines) + "\n"


def broker_settings_text(
    voters: Sequence[VoterSettings], secret_file: Path, ca_file: Path | None, *, insecure: bool
) -> str:
    """The settings that all broker processes have in common: whom they ask, by what secret, and whom they trust.

    ``ca_file`` None: the controllers speak no TLS. ``insecure``: they may be on other machines then.
    """
    urls = ", ".join(toml_text(voter.http) for voter in voters)
    tls = "" if ca_file is None else f"\n[tls]\nca_files = [{toml_text(ca_file)}]\n"
    access = "\n[access]\ninsecure = true\n" if insecure else ""
    return f"controllers = [{urls}]\nshared_secret_file = {toml_text(secret_file)}\n{tls}{access}"


def tls_group(paths: TlsPaths) -> dict[str, dict[str, str]]:
    """The group of a process that has these files."""
    assert paths.cert_file is not None
    assert paths.key_file is not None
    cas = ", ".join(toml_text(path) for path in paths.ca_files)
    named = {"cert_file": toml_text(paths.cert_file), "key_file": toml_text(paths.key_file), "ca_files": f"[{cas}]"}
    return {"tls": named}


def _voter(voter: VoterSettings) -> str:
    """An inline table: a [[voters]] would take in all names that are appended to the file."""
    addresses = f"quorum = {toml_text(voter.quorum)}, http = {toml_text(voter.http)}"
    return f"{{ id = {voter.id}, {addresses}, directory_id = {toml_text(voter.directory_id)} }}"


def toml_text(value: str | Path) -> str:
    """A TOML string: what JSON escapes, TOML escapes in the same way."""
    return json.dumps(str(value), ensure_ascii=False)
