"""`quorate format`: a new cluster on machines of one's own: its settings, and each controller's metadata directory."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.controller.decisions.origin import check_principal
from quorate.controller.process.settings import ControllerSettings, parse_address
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.errors import ApiError, InvalidId
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.own_machines import (
    ADMIN_TOKEN_NAME,
    BROKER_SETTINGS_NAME,
    BROKER_TOKEN_NAME,
    TOKENS_NAME,
    NewController,
    found_directory,
    is_far,
    write_settings,
)
from quorate.scripts.terminal.arguments import AsJson

app = typer.Typer(
    help="Make a new cluster on machines of your own: its settings, and each controller's metadata directory.",
    no_args_is_help=True,
)

_CONTROLLER: Final = re.compile(r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z][0-9A-Za-z._-]*):(\d{1,5}):(\d{1,5})")
#: As many as settings take.
_CONTROLLERS_MAX: Final = 15

NamedControllers = Annotated[
    list[str],
    typer.Option(
        "--controller",
        metavar="ID@HOST:QUORUM_PORT:HTTP_PORT",
        help="A controller, and where the others and clients reach it; again for each.",
    ),
]
Target = Annotated[
    Path, typer.Option("--to", metavar="DIRECTORY", help="Where the files are written, and lie on every machine.")
]
MetadataPath = Annotated[
    str, typer.Option(metavar="PATH", help="Metadata directory on each machine; {id} stands for the controller's id.")
]
NewClusterId = Annotated[
    str | None, typer.Option("--cluster-id", metavar="ID", help="Default: a new one.", show_default=False)
]
Admin = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Users need permissions, and User:NAME is the one who may do everything: his token is written beside.",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Over machines without TLS: whoever is on the network can read and change everything."
    ),
]
ConfigFile = Annotated[Path, typer.Option("--config", help="The controller's settings, a TOML file.")]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", metavar="ID", help="Default: the one in the settings.", show_default=False),
]


@app.command("settings")
def settings_command(
    controllers: NamedControllers,
    target: Target,
    metadata: MetadataPath = "/var/lib/quorate/controller-{id}",
    cluster_id: NewClusterId = None,
    admin: Admin = None,
    insecure: Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Write the settings of a new cluster: a file for each controller, one for brokers, and their shared secret.

    Done once, on any machine; no directory is made yet. The files hold the cluster's id and the id of each
    controller's directory, so all controllers must have theirs from here. One, three or five controllers are
    sensible: a majority of them must run.

    Controllers beyond loopback start with TLS and permissions only: --admin says who grants them. The settings name
    the certificates, CONTROLLER.pem and .key of each and ca.pem of all, which are not made here. --insecure is for
    networks that are trusted with everything.

    Example (then take /etc/quorate to the same place on all three machines):

      quorate format settings --to /etc/quorate --controller 1@10.0.0.1:9093:8080 --controller 2@10.0.0.2:9093:8080
      --controller 3@10.0.0.3:9093:8080 --admin root
    """
    named = _controllers(controllers)
    if not metadata:
        raise typer.BadParameter("an empty path would be the directory that one is in", param_hint="--metadata")
    wanted = new_id() if cluster_id is None else _checked_id(cluster_id)
    if len(named) > 1 and "{id}" not in metadata and len({one.quorum.rpartition(":")[0] for one in named}) < len(named):
        raise typer.BadParameter("two controllers on one machine need {id} in the path", param_hint="--metadata")
    principal = _principal_of(admin)
    has_tls = is_far(named) and not insecure
    if principal is None and has_tls:
        rule = "other machines reach these controllers: say --admin NAME for TLS and permissions, or --insecure"
        raise typer.BadParameter(rule, param_hint="--admin")
    files = write_settings(target, wanted, named, metadata, admin=principal, insecure=insecure)
    if as_json:
        document = {"cluster_id": wanted, "files": {name: str(path) for name, path in files.items()}}
        sys.stdout.write(json.dumps(document) + "\n")
        return
    typer.echo(f"Cluster {wanted}: settings of {len(named)} controllers, of brokers, and their secret in {target}.")
    typer.echo("Take them to the same place on every machine; the secret is for nobody else.")
    if principal is not None:
        _tell_of_tokens(principal, target.resolve())
    if has_tls:
        _tell_of_certificates(named, wanted, target.resolve())
    _tell_what_is_next([file for name, file in files.items() if name.startswith("controller-")])
    typer.echo(f"  quorate broker --config {shlex.quote(str(files[BROKER_SETTINGS_NAME]))} --ids 11")


def _tell_of_tokens(admin: str, home: Path) -> None:
    typer.echo(f"{admin} may do everything, and asks with --secret-file {shlex.quote(str(home / ADMIN_TOKEN_NAME))}.")
    tokens, token = (shlex.quote(str(home / name)) for name in (TOKENS_NAME, BROKER_TOKEN_NAME))
    typer.echo("Brokers have a token of their own, which is made so (umask 077):")
    typer.echo(f"  quorate bearer-tokens add Broker:11 --file {tokens} > {token}")


def _tell_of_certificates(controllers: list[NewController], cluster_id: str, home: Path) -> None:
    typer.echo(f"Controllers and whoever asks them speak TLS, with certificates in {home} that the settings name.")
    typer.echo("Any CA will do that names nodes by their URIs; one of your own is made where no cluster runs:")
    typer.echo(f"  quorate certs init --cluster-id {cluster_id}")
    for one in controllers:
        hosts = dict.fromkeys(parse_address(address).host for address in (one.quorum, one.http))
        typer.echo(f"  quorate certs issue controller {one.id} --hosts {','.join(hosts)}")


def _tell_what_is_next(files: list[Path]) -> None:
    typer.echo("First, each on its own:")
    for file in files:
        typer.echo(f"  quorate format directory --founding --config {shlex.quote(str(file))}")
    typer.echo("When all of them are made:")
    for file in files:
        typer.echo(f"  quorate controller --config {shlex.quote(str(file))}")


@app.command("directory")
def directory_command(
    config: ConfigFile,
    founding: Annotated[
        bool, typer.Option("--founding", help="Say that no controller of this cluster has ever run.")
    ] = False,
    cluster_id: ClusterId = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the metadata directory of one controller of a new cluster: it votes from its first start on.

    For a cluster of which no controller has run, once for each controller, and never again. A controller that lost its
    directory, or that comes when the others run already, must not get one of these: it may have voted and acknowledged
    records, and would have forgotten it. For that there is: quorate recover rejoin.

    Refused where another controller of the settings answers and has a log; where none says anything, only you can know
    that none has run: say --founding. A directory that is formatted already is never touched.

    Example: quorate format directory --founding --config /etc/quorate/controller-1.toml
    """
    settings = load_settings(ControllerSettings, config, overrides or ())
    id_ = settings.cluster_id if cluster_id is None else _checked_id(cluster_id)
    if id_ is None:
        raise typer.BadParameter("of which cluster? The settings do not say", param_hint="--cluster-id")
    if settings.cluster_id not in (None, id_):
        raise typer.BadParameter(f"the settings say {settings.cluster_id}", param_hint="--cluster-id")
    found_directory(settings, id_, is_founding=founding)
    if as_json:
        document = {"cluster_id": id_, "node_id": settings.node_id, "directory": str(settings.directory)}
        sys.stdout.write(json.dumps(document) + "\n")
        return
    typer.echo(f"{settings.directory} is ready: controller {settings.node_id} of cluster {id_}.")
    typer.echo(f"Start it: quorate controller --config {shlex.quote(str(config))}")


def _principal_of(admin: str | None) -> str | None:
    if admin is None:
        return None
    try:
        return check_principal(f"User:{admin}")
    except ApiError as error:
        raise typer.BadParameter(error.message, param_hint="--admin") from None


def _controllers(texts: list[str]) -> list[NewController]:
    found = sorted((_controller(text) for text in texts), key=lambda one: one.id)
    if len(found) > _CONTROLLERS_MAX:
        raise typer.BadParameter(f"{len(found)} controllers; {_CONTROLLERS_MAX} at most", param_hint="--controller")
    said = [text for one in found for text in (f"controller {one.id}", one.quorum, one.http)]
    twice = next((text for text in said if said.count(text) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"{twice} is named twice", param_hint="--controller")
    return found


def _controller(text: str) -> NewController:
    match = _CONTROLLER.fullmatch(text)
    if match is None or int(match[1]) >= 2**31:
        wanted = "ID@HOST:QUORUM_PORT:HTTP_PORT is wanted, as 1@10.0.0.1:9093:8080"
        raise typer.BadParameter(f"{text[:100]!r} is no controller: {wanted}", param_hint="--controller")
    try:
        quorum, http = (str(parse_address(f"{match[2]}:{port}")) for port in (match[3], match[4]))
    except ValueError as error:
        raise typer.BadParameter(f"{text[:100]!r}: {error}", param_hint="--controller") from None
    if _names_no_machine(match[2].strip("[]")):
        rule = "it is where the others and clients reach the controller, and no machine; to listen on every address of"
        rule += " one, name it here and set http.bind in its settings"
        raise typer.BadParameter(f"{text[:100]!r}: {match[2]}: {rule}", param_hint="--controller")
    return NewController(int(match[1]), quorum, http)


def _names_no_machine(host: str) -> bool:
    """Whether it is the address that stands for all addresses, as Kafka refuses to advertise."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _checked_id(text: str) -> str:
    try:
        uuid_from_text(text)
    except InvalidId as error:
        raise typer.BadParameter(str(error), param_hint="--cluster-id") from None
    return text
