"""The settings that a controller decides by, besides the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.controller.decisions.policies import Policies


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """The rules for making delegation tokens. Periods in milliseconds."""

    #: Gives what HMACs are made with at the moment, the same on all controllers and brokers: the first is for new
    #: tokens, and those of each are known. None: there are no tokens.
    secrets: Callable[[], tuple[bytes, ...]] | None = field(repr=False)
    max_lifetime_ms: int
    renew_period_ms: int
    #: Tokens that there may be, and those of one owner.
    count_max: int
    per_owner_max: int


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Settings of the active controller that its decisions depend on."""

    #: The controller's own id: a broker config under this id counts for it.
    node_id: int
    cluster_id: str
    session_timeout_ms: int
    default_num_partitions: int
    default_replication_factor: int
    topics_can_be_deleted: bool
    #: Topics and partitions that the whole cluster may have.
    topics_max: int
    partitions_max: int
    #: Kafka configs that hold where no dynamic config says otherwise, such as ``min.insync.replicas``.
    static_configs: Mapping[str, str]
    #: Leadership goes back only to brokers that miss more than this share of what they are preferred for; None = any.
    leader_imbalance_percentage: int | None
    #: Controllers of the quorum: each must have registered before a feature level is raised that it might not support.
    voter_ids: frozenset[int]
    #: A partition with nobody in sync or eligible is led by its last leader again when that one is back.
    elects_last_known_leader: bool
    policies: Policies
    tokens: TokenConfig
