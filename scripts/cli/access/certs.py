"""`quorate certs`: a CA and certificates for the controllers, brokers and clients of a small cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.controller.identity.identity import NodeIdentity
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.certificates.authority import Validity
from quorate.scripts.certificates.certificate_directory import CertificateDirectory
from quorate.scripts.certificates.certificate_files import read_certificate_file
from quorate.scripts.certificates.findings import CertificateFinding, look_at
from quorate.scripts.certificates.holders import (
    CA_KEY_NAME,
    CA_NAME,
    CertificateHolder,
    broker_holder,
    client_holder,
    client_principal,
    controller_holder,
)
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, broker_ids
from quorate.scripts.terminal.output import counted, reader_may_leave
from quorate.scripts.terminal.tables import columns

app = typer.Typer(
    help="A CA and certificates for controllers, brokers and clients: make, renew and look at them.",
    no_args_is_help=True,
)

_CA_DAYS: Final = 3_650
_DAYS: Final = 365
_DAYS_MAX: Final = 36_500
#: As long before the end as controllers call themselves degraded.
_WARNING_DAYS: Final = 14


class HolderKind(StrEnum):
    """Whoever a certificate is for."""

    CONTROLLER = "controller"
    BROKER = "broker"
    CLIENT = "client"


CertificatesDirectory = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="Where the CA and what it issues lie.", show_default=True)
]
CaDays = Annotated[int, typer.Option("--days", min=1, max=_DAYS_MAX, help="How long the CA is good.")]
LeafDays = Annotated[
    int, typer.Option("--days", min=1, max=_DAYS_MAX, help="How long it is good; never longer than its CA.")
]
CERTIFICATES: Final = Path("certificates")


@app.command()
def init(
    cluster_id: Annotated[
        str, typer.Option("--cluster-id", metavar="ID", help="The cluster whose nodes it names.", show_default=False)
    ],
    directory: CertificatesDirectory = CERTIFICATES,
    days: CaDays = _CA_DAYS,
    any_id: Annotated[
        bool,
        typer.Option("--any-id", help="The id is no UUID, as Kafka lets one choose: 1 to 64 letters, digits, - and _."),
    ] = False,
) -> None:
    """Make a CA. Its key issues everything else: keep the directory where no cluster runs, and to yourself.

    Every certificate names the cluster, and no controller takes one of another: the id is that of its settings and its
    meta.properties, 22 characters, as `quorate format settings` prints it.

    Exit code 0: it was made; 1: refused, as where there is one already, and nothing was written; 2: the id is none.

    Example: quorate certs init --dir certificates --cluster-id MkU3OEVBNTcwNTJENDM2Qg
    """
    if not any_id:
        _check_id(cluster_id)
    made = CertificateDirectory.make(directory, cluster_id, Validity.of(days))
    print(f"CA of cluster {made.cluster_id}: {_until(directory / CA_NAME)}")
    print(f"{directory / CA_NAME} is for everybody (`tls.ca_files`), {directory / CA_KEY_NAME} for nobody else")


def _check_id(text: str) -> None:
    try:
        uuid_from_text(text)
    except InvalidId as error:
        raise typer.BadParameter(f"{error}; if the cluster's id is this: --any-id", param_hint="--cluster-id") from None


@app.command()
def issue(
    kind: Annotated[HolderKind, typer.Argument(help="What it is for.")],
    who: Annotated[
        str,
        typer.Argument(
            metavar="ID|NAME",
            help="A controller's id, a broker's (11-13,20 for one process that plays several), a client's name.",
            show_default=False,
        ),
    ],
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="HOST,...",
            help="Names and IP addresses by which a controller or broker is reached. Clients have none.",
            show_default=False,
        ),
    ] = None,
    directory: CertificatesDirectory = CERTIFICATES,
    days: LeafDays = _DAYS,
) -> None:
    """Issue a certificate, with a new key.

    It names a node by a URI, quorate://CLUSTER/controller/ID or quorate://CLUSTER/broker/ID: take the two files and
    ca.pem to its machine, and name them in its settings (`tls`). A client NAME is the principal User:CN=NAME to
    controllers, if `access.principal_mapping_rules` make no other of it; commands take its files by
    QUORATE_CERT_FILE, QUORATE_KEY_FILE and QUORATE_CA_FILE.

    Exit code 0: it was issued; 1: refused, as where there is one already, and nothing was written.

    Examples:

      quorate certs issue controller 1 --hosts controller-1.example,10.0.0.1

      quorate certs issue broker 11 --hosts 127.0.0.1

      quorate certs issue client admin
    """
    certificates = CertificateDirectory(directory)
    holder = _holder(kind, who, hosts, certificates.cluster_id)
    paths = certificates.issue(holder, Validity.of(days))
    assert paths.cert_file is not None
    print(f"{holder.name} of cluster {certificates.cluster_id}: {_until(paths.cert_file)}")
    print(f"{paths.cert_file} and {paths.key_file}, which is for its owner alone")
    if kind == "client":
        print(f"To controllers it is {client_principal(who)}, if access.principal_mapping_rules make no other of it")


@app.command()
def renew(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...|ca", help="As controller-1, broker-11, client-admin; or the CA."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All certificates that are here, the CA not among them.")
    ] = False,
    directory: CertificatesDirectory = CERTIFICATES,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=_DAYS_MAX, help=f"How long: {_DAYS} by default, a CA {_CA_DAYS}.", show_default=False),
    ] = None,
) -> None:
    """Issue certificates anew for the same names, with new keys, in place of those that are there.

    Processes read changed files by themselves, and no connection is broken. `renew ca` makes a second CA, which issues
    from now on; both are in ca.pem. So a CA is changed without a restart: renew ca, and take ca.pem to everybody; renew
    --all, and take each its files; retire, and take ca.pem to everybody once more.

    Exit code 0: done; 1: refused, and what is named behind it was left as it is.

    Example: quorate certs renew controller-1 --dir certificates
    """
    if every == bool(names):
        raise typer.BadParameter("which ones? Name them, or say --all, and not both", param_hint="NAME")
    certificates = CertificateDirectory(directory)
    for name in dict.fromkeys(names or certificates.names()):
        if name == "ca":
            certificates.renew_authority(Validity.of(days or _CA_DAYS))
            print(f"CA of cluster {certificates.cluster_id}: {_until(directory / CA_NAME)}, beside those before it")
        else:
            _require_name(name, certificates)
            certificates.renew(name, Validity.of(days or _DAYS))
            print(f"{name}: {_until(directory / f'{name}.pem')}")


@app.command()
def retire(directory: CertificatesDirectory = CERTIFICATES) -> None:
    """Trust no CA any more but the newest: the last step of changing it. ca.pem has to be taken to everybody then.

    Refused while a certificate here is of a CA before it.
    """
    gone = CertificateDirectory(directory).retire()
    print(f"{counted(gone, 'CA')} before the one that issues {'is' if gone == 1 else 'are'} trusted no more")


@app.command()
def show(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A certificate, or a directory of them.")
    ] = CERTIFICATES,
    within: Annotated[
        int, typer.Option("--within-days", min=0, max=_DAYS_MAX, help="Call it a problem if one ends sooner.")
    ] = _WARNING_DAYS,
    as_json: AsJson = False,
) -> None:
    """Show names, days left, and whether each key is that of its certificate.

    Exit code 0: all is well; 1: one has expired, ends soon, or cannot be used, or a file cannot be read.

    Example: quorate certs show /etc/quorate/certificates --within-days 30
    """
    findings = look_at(path, datetime.now(UTC), within)
    with reader_may_leave():
        if as_json:
            sys.stdout.write(json.dumps([_document(one) for one in findings]) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in _lines(findings))
    if any(one.problems for one in findings):
        raise typer.Exit(exit_codes.REFUSED)


def _holder(kind: HolderKind, who: str, hosts: str | None, cluster_id: str) -> CertificateHolder:
    named = [host.strip() for host in hosts.split(",")] if hosts else []
    if kind == HolderKind.CLIENT:
        if named:
            raise typer.BadParameter("a client serves nobody, and has no hosts", param_hint="--hosts")
        return client_holder(who)
    if not named:
        raise typer.BadParameter(f"by which names and addresses is {kind} {who} reached?", param_hint="--hosts")
    if kind == HolderKind.BROKER:
        return broker_holder(cluster_id, broker_ids(who, "ID"), named)
    node = NodeIdentity.parse(f"controller/{who}")
    if node is None or len(node.ids) > 1:
        raise typer.BadParameter(f"{who[:80]!r} is no id of a controller", param_hint="ID")
    return controller_holder(cluster_id, min(node.ids), named)


def _require_name(name: str, certificates: CertificateDirectory) -> None:
    known = certificates.names()
    if name not in known:
        raise typer.BadParameter(
            f"{name[:80]!r} has no certificate in {certificates.path}; there are: {', '.join(known) or 'none'}",
            param_hint="NAME",
        )


def _until(file: Path) -> str:
    return f"good until {read_certificate_file(file)[0].not_valid_after_utc:%Y-%m-%d}"


def _document(one: CertificateFinding) -> dict[str, object]:
    return asdict(one) | {"begins": one.begins.isoformat(), "ends": one.ends.isoformat()}


def _lines(findings: Sequence[CertificateFinding]) -> Iterator[str]:
    rows = [("FILE", "OF", "HOSTS", "ENDS", "DAYS-LEFT", "KEY")]
    for one in findings:
        named = ",".join(one.uris) or one.subject
        key = "here" if one.has_key else "-"
        rows.append((one.file, named, ",".join(one.hosts) or "-", f"{one.ends:%Y-%m-%d}", f"{one.days_left:.0f}", key))
    yield from columns(rows)
    for one in findings:
        yield from (f"{one.file}: {problem}" for problem in one.problems)
