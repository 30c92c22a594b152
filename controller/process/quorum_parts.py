"""Turns a controller process's settings into the config of its quorum.

As in ``settings_parts`` the settings alone have defaults, of what they know: who is without settings begins with
``default_quorum_config``.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import NoAccess
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.settings import ControllerSettings, LimitSettings, LogSettings, QuorumSettings
from quorate.metadata_log.checkpoints.retention import RetentionConfig
from quorate.metadata_log.directory.directory import ForeignDirectory, MetadataDirectory
from quorate.metadata_log.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text
from quorate.quorum.config import QuorumConfig, QuorumLimits, QuorumTiming, VoterAddress
from quorate.quorum.transport.tls import QuorumTls
from quorate.quorum.versions import NEWEST_VERSION


def quorum_config(settings: ControllerSettings, directory: MetadataDirectory) -> QuorumConfig:
    """The config of a node over its directory.

    Raises:
        ForeignDirectory: the settings give this node another directory.
    """
    own = settings.voter.directory_id
    if own is not None and uuid_from_text(own) not in (directory.meta.directory_id, directory.meta.replaces):
        problem = f"is directory {uuid_text(directory.meta.directory_id)}, and the settings say {own}"
        raise ForeignDirectory(directory.path, problem, "start the node with its own directory, or correct `voters`")
    return QuorumConfig(
        cluster_id=directory.meta.cluster_id,
        node_id=settings.node_id,
        directory_id=directory.meta.directory_id,
        voters=tuple(
            VoterAddress(
                voter.id,
                voter.quorum.host,
                voter.quorum.port,
                ZERO_UUID if voter.directory_id is None else uuid_from_text(voter.directory_id),
            )
            for voter in settings.voters
        ),
        kraft_version=settings.quorum.kraft_version,
        generation=directory.meta.generation,
        http_url=settings.tls.url(settings.voter.http),
        timing=quorum_timing(settings.quorum),
        limits=quorum_limits(settings.limits),
        retention=retention_config(settings.log),
        newest_version=newest_version(settings.quorum),
    )


def default_quorum_config(
    cluster_id: str, node_id: int, directory_id: Uuid, voters: tuple[VoterAddress, ...]
) -> QuorumConfig:
    """The same of settings that say nothing but who agrees, for benchmarks and simulations; no HTTP is served."""
    quorum = QuorumSettings()
    return QuorumConfig(
        cluster_id,
        node_id,
        directory_id,
        voters,
        kraft_version=quorum.kraft_version,
        http_url="",
        timing=quorum_timing(quorum),
        limits=quorum_limits(LimitSettings()),
        retention=retention_config(LogSettings()),
        newest_version=newest_version(quorum),
    )


def newest_version(settings: QuorumSettings) -> int:
    """The newest version of messages that is spoken to other voters."""
    return NEWEST_VERSION if settings.message_version_max is None else settings.message_version_max


def quorum_timing(settings: QuorumSettings) -> QuorumTiming:
    """Times, in seconds. ``QuorumSettings()``: as by default."""
    return QuorumTiming(
        election_timeout_min=settings.election_timeout_min_ms / 1000,
        election_timeout_max=settings.election_timeout_max_ms / 1000,
        heartbeat_interval=settings.heartbeat_interval_ms / 1000,
        disk_timeout=settings.disk_timeout_ms / 1000,
    )


def quorum_limits(settings: LimitSettings) -> QuorumLimits:
    """Bounds on work and memory."""
    return QuorumLimits(unwritten_bytes=settings.unwritten_bytes_max)


def retention_config(settings: LogSettings) -> RetentionConfig:
    """The part of the log and of checkpoints that is kept."""
    return RetentionConfig(settings.retention_bytes, settings.retention_ms)


def quorum_tls(files: TlsFiles | None, cluster_id: str) -> QuorumTls | None:
    """TLS between the voters of a cluster, by the certificates of the HTTP API; None without any."""
    if files is None:
        return None
    return QuorumTls(files.as_peer_server, files.as_peer_client, controllers_of(cluster_id))


def own_certificate_check(cluster_id: str, node_id: int) -> Callable[[bytes], None]:
    """Raises NoAccess for a certificate that no other voter would take for this controller's."""
    controllers = controllers_of(cluster_id)

    def check(certificate: bytes) -> None:
        if node_id not in controllers(certificate):
            raise NoAccess(
                403, f"it is that of another controller, and not quorate://{cluster_id}/controller/{node_id}"
            )

    return check


def controllers_of(cluster_id: str) -> Callable[[bytes], frozenset[int]]:
    """Gives the ids of the controllers that a certificate (DER) names; raises NoAccess if it names none."""
    identities = CertificateIdentities(cluster_id, PrincipalMapping())

    def controllers(certificate: bytes) -> frozenset[int]:
        node = identities.identity(certificate).node
        if node is None or node.role != "controller":
            who = "no node" if node is None else str(node)
            raise NoAccess(403, f"it is of {who}, and has no URI quorate://{cluster_id}/controller/ID")
        return node.ids

    return controllers
