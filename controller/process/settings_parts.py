"""Turns a controller process's settings into the configs of its parts.

The settings alone have defaults. What is made of them here has none, so that no value is written twice; whoever puts
parts together without settings begins with ``default_parts``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.background.checkpoint_writer import CheckpointLimits
from quorate.controller.configs.topic_configs import MIN_ISR_CONFIG, UNCLEAN_CONFIG
from quorate.controller.decisions.controller_config import ControllerConfig, TokenConfig
from quorate.controller.engine.interfaces import ControllerLimits
from quorate.controller.feed.feed import FeedLimits
from quorate.controller.http.ports import NodeLimits
from quorate.controller.identity.secrets import Secrets
from quorate.controller.operations.active_role import RoleSettings
from quorate.controller.process.access_parts import access_parts
from quorate.controller.process.assembly import ControllerParts
from quorate.controller.process.policy_loading import load_policies
from quorate.controller.process.settings import ControllerSettings, LogSettings, TopicSettings
from quorate.controller.protocol.brokers import Listener
from quorate.metadata_log.log.segment_log import LogConfig

#: Names of a controller's listeners: the quorum's, as in the log's list of voters, and that of the HTTP API.
QUORUM_LISTENER, HTTP_LISTENER = "CONTROLLER", "HTTP"


def controller_parts(
    settings: ControllerSettings, cluster_id: str, token_secrets: Secrets | None, shared_secrets: Secrets | None
) -> ControllerParts:
    """The parts that ``assemble`` needs. The secrets: those in the files that the settings name.

    Raises:
        InvalidSettings: a policy that cannot be loaded, or a file of tokens that cannot be used.
    """
    return ControllerParts(
        config=_controller_config(settings, cluster_id, token_secrets),
        role=_role_settings(settings),
        limits=ControllerLimits(settings.limits.queue_length_max, settings.limits.uncommitted_bytes_max),
        checkpoints=CheckpointLimits(settings.log.checkpoint_bytes, settings.log.checkpoint_interval_ms),
        feed=_feed_limits(settings),
        api=_node_limits(settings),
        urls={voter.id: settings.tls.url(voter.http) for voter in settings.voters},
        listeners=_listeners(settings),
        access=access_parts(settings, cluster_id, shared_secrets, token_secrets),
    )


def default_parts(node_id: int, cluster_id: str) -> ControllerParts:
    """The same of settings that say who the controller is and nothing more: it has no voters, URLs or secrets.

    For rehearsals, files, benchmarks and simulations; what they want otherwise they replace.
    """
    # Constructed as it is: neither the environment nor a rule for settings that an operator wrote is asked.
    settings = ControllerSettings.model_construct(node_id=node_id, directory=Path(), voters=())
    return controller_parts(settings, cluster_id, None, None)


def tls_files(settings: ControllerSettings, check: Callable[[bytes], object] | None = None) -> TlsFiles | None:
    """The certificates of a controller; None: it speaks no TLS. ``check``: see ``TlsFiles``.

    Raises:
        InvalidTlsFiles: they cannot be used.
    """
    lets_show = settings.tls.client_auth != "none"
    if not settings.tls.is_on:
        return None
    return TlsFiles(settings.tls.paths, is_server=True, lets_clients_show=lets_show, check=check)


def log_config(settings: LogSettings) -> LogConfig:
    """The log's use of disk and memory. ``LogSettings()``: as by default."""
    return LogConfig(settings.segment_bytes, settings.resident_bytes)


def _controller_config(
    settings: ControllerSettings, cluster_id: str, token_secrets: Secrets | None
) -> ControllerConfig:
    """The config that decisions depend on. ``token_secrets``: those in the file of ``tokens.secret_key_file``.

    Raises:
        InvalidSettings: a policy that cannot be loaded.
    """
    return ControllerConfig(
        node_id=settings.node_id,
        cluster_id=cluster_id,
        session_timeout_ms=settings.brokers.session_timeout_ms,
        default_num_partitions=settings.topics.partitions,
        default_replication_factor=settings.topics.replication_factor,
        topics_can_be_deleted=settings.topics.can_be_deleted,
        topics_max=settings.limits.topics_max,
        partitions_max=settings.limits.partitions_max,
        static_configs=_static_configs(settings.topics),
        leader_imbalance_percentage=settings.maintenance.leader_imbalance_percentage,
        elects_last_known_leader=settings.maintenance.elects_last_known_leader,
        voter_ids=frozenset(voter.id for voter in settings.voters),
        policies=load_policies(settings.policies),
        tokens=TokenConfig(
            secrets=token_secrets,
            max_lifetime_ms=settings.tokens.max_lifetime_ms,
            renew_period_ms=settings.tokens.renew_period_ms,
            count_max=settings.tokens.count_max,
            per_owner_max=settings.tokens.per_owner_max,
        ),
    )


def _static_configs(topics: TopicSettings) -> dict[str, str]:
    """The settings under Kafka's names; a value that they leave open is Kafka's default, and none of theirs."""
    fields = {
        MIN_ISR_CONFIG: "min_insync_replicas",
        "num.partitions": "partitions",
        "default.replication.factor": "replication_factor",
        UNCLEAN_CONFIG: "unclean_leader_election_enable",
    }
    said = {name: getattr(topics, field) for name, field in fields.items() if field in topics.model_fields_set}
    return {name: str(value).lower() for name, value in said.items()}


def _role_settings(settings: ControllerSettings) -> RoleSettings:
    """The work that an active controller does by itself, and how often."""
    return RoleSettings(
        idle_noop_interval_ms=settings.maintenance.idle_noop_interval_ms,
        starts_sessions=not settings.brokers.sessions_begin_with_heartbeat,
        leader_balance_interval_ms=settings.maintenance.leader_balance_interval_ms,
        unclean_election_interval_ms=settings.maintenance.unclean_election_interval_ms,
        token_sweep_interval_ms=settings.tokens.sweep_interval_ms,
        quota_burst_seconds=settings.quotas.window_count * settings.quotas.window_seconds,
    )


def _feed_limits(settings: ControllerSettings) -> FeedLimits:
    """Bounds of the metadata feed."""
    return FeedLimits(
        settings.http.feed_wait_max_ms,
        settings.http.feed_chunk_bytes_max,
        settings.http.feed_cache_bytes,
        settings.http.followers_max,
    )


def _node_limits(settings: ControllerSettings) -> NodeLimits:
    """Bounds of the HTTP API."""
    return NodeLimits(
        body_bytes_max=settings.http.body_bytes_max,
        bodies_bytes_max=settings.http.bodies_bytes_max,
        request_timeout_ms=settings.limits.request_timeout_ms,
        heartbeat_deadline_ms=settings.brokers.heartbeat_deadline_ms,
        read_timeout_ms=settings.http.read_timeout_ms,
        forward_timeout_ms=settings.http.forward_timeout_ms,
        chunk_bytes_max=settings.http.feed_chunk_bytes_max,
        connections_max=settings.http.connections_max,
        connections_per_address_max=settings.http.connections_per_address_max,
        connections_per_second_max=settings.http.connections_per_second_max,
        quota_burst_seconds=settings.quotas.window_count * settings.quotas.window_seconds,
        head_timeout_ms=settings.http.head_timeout_ms,
    )


def _listeners(settings: ControllerSettings) -> tuple[Listener, ...]:
    """The addresses of this controller."""
    return tuple(
        Listener(name=name, host=address.host, port=address.port)
        for voter in settings.voters
        if voter.id == settings.node_id
        for name, address in ((QUORUM_LISTENER, voter.quorum), (HTTP_LISTENER, voter.http))
    )
