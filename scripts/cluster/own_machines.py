"""A cluster on machines of one's own: its settings, made once, and its controllers' directories, made one by one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.process.access_parts import seals_of
from quorate.controller.process.settings import ControllerSettings, parse_address
from quorate.controller.process.settings_parts import tls_files
from quorate.metadata_log.directory.directory import format_directory
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.private_files import read_secret, read_secrets
from quorate.scripts.certificates.holders import CA_NAME, files_of
from quorate.scripts.certificates.local_files import SECRET_NAME
from quorate.scripts.cluster.formatting import FoundingVoter, founding_plan, new_id
from quorate.scripts.cluster.found_controllers import FoundController, ask_each
from quorate.scripts.cluster.plan import ClusterError
from quorate.scripts.cluster.settings_text import (
    ControllerSettingsText,
    VoterSettings,
    broker_settings_text,
    tls_group,
    toml_text,
)

BROKER_SETTINGS_NAME: Final = "broker.toml"
#: The file by which controllers know tokens, the administrator's token, and the brokers', which is made by hand.
TOKENS_NAME: Final = "tokens"
ADMIN_TOKEN_NAME: Final = "admin.token"
BROKER_TOKEN_NAME: Final = "broker.token"
#: The last line of a controller's settings.
_WHAT_MAY_FOLLOW: Final = "# Further tables can be appended here; names outside of tables stand above them."
#: Random bytes of a secret or a token, which nobody chose.
_SECRET_BYTES: Final = 32


class MayHaveRun(QuorateError):
    """A directory that votes from the start could be a voter's second one: nothing was made."""


class GenerationNotTold(QuorateError):
    """A controller is there and does not tell the generation of its quorum: another one would keep a directory out."""


@dataclass(frozen=True, slots=True)
class NewController:
    """A controller of a cluster that is to be, and where it will listen."""

    id: int
    quorum: str
    http: str


def is_far(controllers: Sequence[NewController]) -> bool:
    """Whether other machines reach them."""
    addresses = (parse_address(text) for one in controllers for text in (one.quorum, one.http))
    return not all(address.is_loopback for address in addresses)


def write_settings(
    target: Path,
    cluster_id: str,
    controllers: Sequence[NewController],
    metadata: str,
    *,
    admin: str | None = None,
    insecure: bool = False,
) -> dict[str, Path]:
    """Write a settings file for each controller, one for the brokers, and a secret for all; the files by name.

    The settings name the secret where it is written: the directory is taken to the same place on every machine.

    Args:
        metadata: path of the metadata directories on their machines; ``{id}`` stands for the controller's id.
        admin: the principal who may do everything; he gets a token, and everybody else needs one. Where machines reach
            each other, TLS is in the settings, with files that are not made. None: whoever has the secret may.
        insecure: without TLS all the same, and whoever is on the network is trusted (`access.insecure`).

    Raises:
        ClusterError: one of the files is there already; none of them is written over.
        OSError: the disk failed.
    """
    home = target.resolve()
    voters = [VoterSettings(one.id, one.quorum, one.http, new_id()) for one in controllers]
    has_tls = is_far(controllers) and not insecure
    contents = {SECRET_NAME: f"{secrets.token_urlsafe(_SECRET_BYTES)}\n"}
    if admin is not None:
        token = secrets.token_urlsafe(_SECRET_BYTES)
        contents |= {TOKENS_NAME: f"{token_line(token, admin)}\n", ADMIN_TOKEN_NAME: f"{token}\n"}
    for one in controllers:
        directory = Path(metadata.replace("{id}", str(one.id))).resolve()
        groups = _access_group(home, admin, insecure=insecure) | _tls_group(home, one.id, has_tls=has_tls)
        text = ControllerSettingsText(one.id, cluster_id, directory, voters, home / SECRET_NAME, groups)
        contents[f"controller-{one.id}.toml"] = f"{text}\n{_WHAT_MAY_FOLLOW}\n"
    shown = home / (SECRET_NAME if admin is None else BROKER_TOKEN_NAME)
    contents[BROKER_SETTINGS_NAME] = broker_settings_text(
        voters, shown, home / CA_NAME if has_tls else None, insecure=insecure
    )
    for name in contents:
        if (home / name).exists():
            raise ClusterError(
                f"{home / name} is there already: a cluster's settings are made once, its directories have ids in them;"
                " for another cluster name another directory"
            )
    home.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        _write_new(home / name, content)
    RealDisk().sync_directory(str(home))
    return {name: home / name for name in contents}


def _access_group(home: Path, admin: str | None, *, insecure: bool) -> dict[str, dict[str, str]]:
    said = {"insecure": "true"} if insecure else {}
    if admin is not None:
        tokens = toml_text(home / TOKENS_NAME)
        said |= {"authorizer": '"acl"', "super_users": f"[{toml_text(admin)}]", "tokens_file": tokens}
    return {"access": said} if said else {}


def _tls_group(home: Path, node: int, *, has_tls: bool) -> dict[str, dict[str, str]]:
    return tls_group(files_of(home, f"controller-{node}")) if has_tls else {}


def _write_new(path: Path, content: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def found_directory(settings: ControllerSettings, cluster_id: str, *, is_founding: bool) -> None:
    """Make the directory of a controller's settings, with the right to vote.

    Args:
        is_founding: somebody says that no controller of the cluster has run; where none answers, nobody else can.

    Raises:
        MayHaveRun: another controller has a log, or is not understood, or none says anything and nobody answers for it.
        DirectoryError: the directory is formatted already, or holds something else. OSError: the disk failed.
    """
    _require_has_not_run(settings, cluster_id, is_founding=is_founding)
    voters = [FoundingVoter(one.id, one.directory_id, one.quorum.host, one.quorum.port) for one in settings.voters]
    settings.directory.parent.mkdir(parents=True, exist_ok=True)
    plan = founding_plan(cluster_id, settings.node_id, voters, settings.quorum.kraft_version)
    format_directory(RealDisk(), str(settings.directory), plan)


def ask_generation(settings: ControllerSettings, cluster_id: str) -> int | None:
    """The highest generation of the quorum that a controller of the settings knows; None: nothing is at any address.

    Raises:
        GenerationNotTold: something is, and does not tell it, or is of another cluster.
    """
    answers = _ask_voters(settings)
    for one in answers:
        reason = _not_told(one, cluster_id)
        if reason is not None:
            raise GenerationNotTold(
                f"{reason}: the quorum may have been rebuilt, and a directory of another generation cannot join:"
                " mend that, or say --generation, as the others' meta.properties do"
            )
    return max((one.quorum.generation or 0 for one in answers if one.quorum is not None), default=None)


def _ask_voters(settings: ControllerSettings) -> list[FoundController]:
    """The answers of the addresses of the settings, asked as the controller of the settings asks the others."""
    files = tls_files(settings)
    urls = [settings.tls.url(voter.http) for voter in settings.voters]
    tls = None if files is None else files.as_client
    file, insecure = settings.shared_secret_file, settings.access.insecure
    if settings.access.authorizer == "none":
        return ask_each(urls, None if file is None else read_secret(file), tls, insecure=insecure)
    assert file is not None, "the settings ask for it with an authorizer"
    seals = seals_of(settings, partial(read_secrets, file))
    return ask_each(urls, None, tls, seal=seals.seal, insecure=insecure)


def _require_has_not_run(settings: ControllerSettings, cluster_id: str, *, is_founding: bool) -> None:
    for one in _ask_voters(settings):
        reason = _sign_of_life(one, cluster_id)
        if reason is not None:
            raise MayHaveRun(
                f"{reason}: a directory made as those of a new cluster would vote, and remember nothing of what"
                f" controller {settings.node_id} may have promised: make one that joins the others by: quorate recover"
                " rejoin"
            )
    if not is_founding:
        raise MayHaveRun(
            f"no controller says whether cluster {cluster_id} has ever run: if none of it has, say --founding, once for"
            f" each; if controller {settings.node_id} lost its directory: quorate recover rejoin"
        )


def _sign_of_life(one: FoundController, cluster_id: str) -> str | None:
    """The reason why a cluster is not a new one, by the answer of one of its addresses; None: nothing there says so."""
    quorum = one.quorum
    if quorum is None or one.cluster_id != cluster_id:
        return _not_told(one, cluster_id)
    end = max(quorum.log_end_offset or 0, quorum.high_watermark)
    return f"controller {quorum.observed_by} at {one.url} has {end:,} records of cluster {cluster_id}" if end else None


def _not_told(one: FoundController, cluster_id: str) -> str | None:
    """The reason why whoever is at an address says nothing of a cluster; None: he does, or nobody is there."""
    if one.is_silent:
        return None
    if one.quorum is None:
        return f"{one.url} takes connections and does not say how its cluster is ({one.trouble})"
    if one.cluster_id != cluster_id:
        return f"{one.url} is a controller of cluster {one.cluster_id}, not of {cluster_id}"
    return None
