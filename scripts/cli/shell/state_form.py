"""The form of a whole state as one JSON document, as `image show` and `snapshot show` write it (``views.as_json``).

Tests hold random states against it, in which every part and every field of a part has values.
"""

from __future__ import annotations

from pydantic import BaseModel

from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver


class StateProvenance(BaseModel):
    """The place of a state in its log."""

    last_contained_offset: int
    epoch: int
    log_time_ms: int


class StateEndpoint(BaseModel):
    """An address at which a voter is found by others."""

    name: str
    host: str
    port: int


class StateListener(StateEndpoint):
    """An address at which a broker or a controller is found, and what is spoken there."""

    security_protocol: str


class StateVoter(BaseModel):
    """A voter of the quorum, where the log names them."""

    id: int
    directory_id: str
    endpoints: list[StateEndpoint]


class StateController(BaseModel):
    """A controller's registration; of each feature the lowest and the highest level that it can act on."""

    id: int
    incarnation_id: str
    zk_migration_ready: bool
    listeners: list[StateListener]
    supported_features: dict[str, list[int]]


class StateBroker(BaseModel):
    """A broker's registration; what no level of metadata.version below 4.3 knows is null there."""

    id: int
    epoch: int
    incarnation_id: str
    listeners: list[StateListener]
    supported_features: dict[str, list[int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    log_dirs: list[str]
    cordoned_log_dirs: list[str] | None


class StateQuota(BaseModel):
    """Limits of clients; a name that is null stands for the default."""

    entity: dict[str, str | None]
    values: dict[str, float]


class StateAcl(BaseModel):
    """An ACL entry, in Kafka's names."""

    id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class StateCredential(BaseModel):
    """A user's credential of one mechanism, without what authenticates."""

    mechanism: str
    iterations: int


class StateToken(BaseModel):
    """A delegation token; times in milliseconds since 1970."""

    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    expiration_timestamp: int
    max_timestamp: int


class StateReassignment(BaseModel):
    """An open reassignment of one partition."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class StateTopic(BaseModel):
    """A topic, and its partitions by number: each a row in the order of ``partition_columns``."""

    id: str
    internal: bool
    partitions: dict[str, list[int | list[int] | list[str]]]


class StateDocument(BaseModel):
    """All that a log adds up to at one offset. Configs that may be secrets are `(hidden)`."""

    digest: str
    passed_over: list[PassedOver]
    provenance: StateProvenance
    features: dict[str, int]
    zk_migration_state: str
    voters: list[StateVoter] | None
    brokers: list[StateBroker]
    controllers: list[StateController]
    topic_configs: dict[str, dict[str, str]]
    broker_configs: dict[str, dict[str, str]]
    client_metrics_configs: dict[str, dict[str, str]]
    group_configs: dict[str, dict[str, str]]
    #: By the number of the kind of resource.
    other_configs: dict[str, dict[str, dict[str, str]]]
    labels: dict[str, dict[str, str]]
    client_quotas: list[StateQuota]
    next_producer_id: int | None
    acls: list[StateAcl]
    scram: dict[str, list[StateCredential]]
    delegation_tokens: dict[str, StateToken]
    reassignments: dict[str, StateReassignment]
    partition_columns: list[str]
    topics: dict[str, StateTopic]
