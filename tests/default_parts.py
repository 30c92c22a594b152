"""Configs of a controller's parts as settings by default make them, but for what a test says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.controller.background.checkpoint_writer import CheckpointLimits
from quorate.controller.decisions.controller_config import ControllerConfig, TokenConfig
from quorate.controller.engine.interfaces import ControllerLimits
from quorate.controller.feed.feed import FeedLimits
from quorate.controller.http.ports import NodeLimits
from quorate.controller.operations.active_role import RoleSettings
from quorate.controller.process.quorum_parts import default_quorum_config
from quorate.controller.process.settings import LogSettings
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.process.settings_parts import log_config as log_config_of
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.log.segment_log import LogConfig
from quorate.quorum.config import QuorumConfig, QuorumLimits, QuorumTiming, VoterAddress

_PARTS = default_parts(0, "a-cluster")
_QUORUM = default_quorum_config("a-cluster", 0, bytes(16), (VoterAddress(0, "127.0.0.1", 0),))


def controller_config(node_id: int, cluster_id: str, **changes: Any) -> ControllerConfig:
    """What decisions depend on."""
    return replace(_PARTS.config, node_id=node_id, cluster_id=cluster_id, **changes)


def token_config(secret: bytes | None, **changes: Any) -> TokenConfig:
    """How tokens are made."""
    secrets = None if secret is None else lambda: (secret,)
    return replace(_PARTS.config.tokens, secrets=secrets, **changes)


def role_settings(**changes: Any) -> RoleSettings:
    """What the active controller does by itself."""
    return replace(_PARTS.role, **changes)


def controller_limits(**changes: Any) -> ControllerLimits:
    """Bounds on what waits."""
    return replace(_PARTS.limits, **changes)


def checkpoint_limits() -> CheckpointLimits:
    """When a checkpoint is due."""
    return _PARTS.checkpoints


def feed_limits(**changes: Any) -> FeedLimits:
    """Bounds of the metadata feed."""
    return replace(_PARTS.feed, **changes)


def node_limits(**changes: Any) -> NodeLimits:
    """Bounds of the HTTP API."""
    return replace(_PARTS.api, **changes)


def log_config(**changes: Any) -> LogConfig:
    """How the log uses disk and memory."""
    return replace(log_config_of(LogSettings()), **changes)


def quorum_config(
    cluster_id: str, node_id: int, directory_id: Uuid, voters: tuple[VoterAddress, ...], **changes: Any
) -> QuorumConfig:
    """Who a node is and with whom it agrees."""
    return replace(default_quorum_config(cluster_id, node_id, directory_id, voters), **changes)


def quorum_limits(**changes: Any) -> QuorumLimits:
    """Bounds on the quorum's work and memory."""
    return replace(_QUORUM.limits, **changes)


def quorum_timing(**changes: Any) -> QuorumTiming:
    """Times of the quorum, in seconds."""
    return replace(_QUORUM.timing, **changes)
