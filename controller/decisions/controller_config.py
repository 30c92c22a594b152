"""The settings that a controller decides by, besides the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from quorate.controller.decisions.policies import NO_POLICIES, Policies


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """How delegation tokens are made. Periods in milliseconds."""

    #: What HMACs are made with, the same on all controllers and brokers; None: there are no tokens.
    secret: bytes | None = field(default=None, repr=False)
    max_lifetime_ms: int = 7 * 24 * 3_600_000
    renew_period_ms: int = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Settings of the active controller that its decisions depend on."""

    #: The controller's own id: a broker config under this id counts for it.
    node_id: int
    cluster_id: str
    session_timeout_ms: int = 9_000
    default_num_partitions: int = 1
    default_replication_factor: int = 3
    topics_can_be_deleted: bool = True
    #: Kafka configs that hold where no dynamic config says otherwise, such as ``min.insync.replicas``.
    static_configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: Leadership goes back only to brokers that miss more than this share of what they are preferred for; None = any.
    leader_imbalance_percentage: int | None = None
    #: Controllers of the quorum: each must have registered before a feature level is raised that it might not support.
    voter_ids: frozenset[int] = frozenset()
    #: A partition with nobody in sync or eligible is led by its last leader again when that one is back.
    elects_last_known_leader: bool = True
    policies: Policies = NO_POLICIES
    tokens: TokenConfig = TokenConfig()
