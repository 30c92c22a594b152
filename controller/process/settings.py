"""Settings of one controller process, each with its unit, default and limits.

docs/configuration.md is generated from this module; settings_source.py reads them.
A process is told these; what the cluster must agree on (features, voters' directories) lies in the log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from quorate.controller.api.tls_files import TlsPaths, check_paths
from quorate.controller.process.access_settings import AccessSettings, AuditSettings, QuotaSettings, TokenSettings
from quorate.controller.process.setting_group import Group
from quorate.controller.process.tracing.settings import TracingSettings
from quorate.metadata_log.ids import uuid_from_text
from quorate.metadata_log.local_sockets import checked_path
from quorate.metadata_log.loopback import is_loopback

ENVIRONMENT_PREFIX: Final = "QUORATE_CONTROLLER_"
ENVIRONMENT_NESTING: Final = "__"
_MEBIBYTE: Final = 1024 * 1024


class Address(NamedTuple):
    """An address to listen on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def parse_address(value: object) -> Address:
    """``host:port`` or ``[ipv6]:port``; raises ValueError with the rule."""
    if isinstance(value, Address):
        return value
    host, colon, port = str(value).rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 address must be in brackets")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError("it must be host:port with a port from 1 to 65535")
    return Address(host, int(port))


def _check_directory_id(text: str) -> str:
    uuid_from_text(text)
    return text


#: A uuid in Kafka's form, 22 characters.
DirectoryId = Annotated[str, AfterValidator(_check_directory_id)]
HostPort = Annotated[Address, BeforeValidator(parse_address, json_schema_input_type=str)]


class ConfiguredVoter(Group):
    """One controller of the quorum."""

    id: int = Field(ge=0)
    """Node id, unique among controllers and brokers."""
    quorum: HostPort
    """host:port where it listens for the other voters."""
    http: HostPort
    """host:port of its HTTP API, as the other controllers and the clients reach it."""
    directory_id: DirectoryId | None = None
    """Id of the metadata directory that it was founded with. At `quorum.kraft_version` 1 all voters have one. It stays
    as it is, the same on all controllers, when a directory that was lost is made anew by `quorate recover rejoin`."""


class QuorumSettings(Group):
    """Agreement between the voters. Safety never depends on a time."""

    election_timeout_min_ms: int = Field(default=500, ge=50, le=60_000)
    """A voter that hears no leader asks for an election after a random time not below this."""
    election_timeout_max_ms: int = Field(default=1000, ge=51, le=120_000)
    """Upper end of that random time."""
    heartbeat_interval_ms: int = Field(default=100, ge=5, le=10_000)
    """An idle leader tells its followers this often that it lives; under a third of `election_timeout_min_ms`."""
    disk_timeout_ms: int = Field(default=5_000, ge=100, le=600_000)
    """A leader whose disk has not answered for this long, or took longer for one write, gives up leadership; it stands
    again when the disk has answered."""
    kraft_version: Literal[0, 1] = 1
    """1: the voters are written to the log, with their directories. 0: they are in the settings only, as in clusters of
    Kafka with a static voter list; for twins of such clusters."""

    message_version_max: int | None = Field(default=None, ge=1, le=255)
    """Of the versions of messages that this release knows none above this is spoken to other voters, as the release
    before would: to rehearse an upgrade. Two voters speak the newest version that both know. Unset: all it knows."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        if self.election_timeout_max_ms <= self.election_timeout_min_ms:
            raise ValueError(
                f"election_timeout_max_ms {self.election_timeout_max_ms} is not above "
                f"election_timeout_min_ms {self.election_timeout_min_ms}"
            )
        if self.heartbeat_interval_ms * 3 >= self.election_timeout_min_ms:
            raise ValueError(
                f"heartbeat_interval_ms {self.heartbeat_interval_ms} is not under a third of "
                f"election_timeout_min_ms {self.election_timeout_min_ms}"
            )
        return self


class BrokerSessionSettings(Group):
    """Sessions of brokers: how long they last, and how they begin."""

    session_timeout_ms: int = Field(default=9_000, ge=100, le=3_600_000)
    """A broker that is silent for this long is fenced (Kafka's broker.session.timeout.ms). The same on all controllers,
    and changed only while no worker runs that counts on its session."""
    heartbeat_deadline_ms: int = Field(default=1_000, ge=50, le=60_000)
    """A heartbeat that waited this long in the queue is refused; it still counts as a sign of life."""
    sessions_begin_with_heartbeat: bool = False
    """A broker's session begins with its first heartbeat, and not when a controller becomes active: a cluster made from
    another one's metadata then stays as it is until its brokers speak."""


class TopicSettings(Group):
    """Defaults of topics, and whether topics can be deleted."""

    partitions: int = Field(default=1, ge=1, le=10_000)
    """Number of partitions (Kafka's num.partitions)."""
    replication_factor: int = Field(default=3, ge=1, le=64)
    """Replicas of each partition (Kafka's default.replication.factor)."""
    min_insync_replicas: int = Field(default=1, ge=1, le=64)
    """Kafka's min.insync.replicas, where the log sets none."""
    unclean_leader_election_enable: bool = False
    """Kafka's unclean.leader.election.enable, where the log sets none: a partition that nobody in sync or eligible can
    lead is led by any replica that lives, which may lack what was acknowledged."""
    can_be_deleted: bool = True
    """Whether anybody can delete topics (Kafka's delete.topic.enable). The active controller's setting counts: give all
    the same."""


def _check_reference(text: str) -> str:
    module, colon, name = text.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError("it must be module:Class")
    return text


#: A class that is imported when the process starts.
ClassReference = Annotated[str, Field(max_length=256), AfterValidator(_check_reference)]


class PolicySettings(Group):
    """Rules of the operator's own (docs/policies.md). They are asked by the active controller: give all the same."""

    create_topic: ClassReference | None = None
    """`module:Class` of what decides whether a topic may be created (Kafka's create.topic.policy.class.name)."""
    alter_config: ClassReference | None = None
    """`module:Class` of what decides whether configs may be changed (Kafka's alter.config.policy.class.name)."""


class LimitSettings(Group):
    """Bounds on what waits, and on what the cluster holds. Over one of them a request is refused before it is carried
    out; a retry is safe."""

    request_timeout_ms: int = Field(default=30_000, ge=100, le=600_000)
    """Longest time a write may take: half of it for its turn, half for its commit. A request may name a shorter one."""
    queue_length_max: int = Field(default=10_000, ge=16, le=1_000_000)
    """Requests that wait for their turn."""
    uncommitted_bytes_max: int = Field(default=64 * _MEBIBYTE, ge=_MEBIBYTE, le=4096 * _MEBIBYTE)
    """Bytes appended and not yet committed."""
    unwritten_bytes_max: int = Field(default=128 * _MEBIBYTE, ge=16 * _MEBIBYTE, le=16_384 * _MEBIBYTE)
    """Bytes that wait for this controller's own disk. Over it a leader gives up leadership, a follower takes no more
    until half of it is free; above `uncommitted_bytes_max`, so that a busy leader on a slow disk refuses first."""
    topics_max: int = Field(default=1_000_000, ge=1, le=100_000_000)
    """Topics that the whole cluster may have: one more is refused (POLICY_VIOLATION). The active controller's setting
    counts, and that of `partitions_max`: give all the same."""
    partitions_max: int = Field(default=4_000_000, ge=1, le=100_000_000)
    """Partitions that the whole cluster may have, refused alike; each takes memory on every controller and broker."""


class MaintenanceSettings(Group):
    """Work that the active controller does by itself."""

    idle_noop_interval_ms: int = Field(default=500, ge=0, le=600_000)
    """An idle log gets a NoOp record this often, so that standbys and brokers see that it lives; 0: never
    (Kafka's metadata.max.idle.interval.ms)."""
    leader_balance_interval_ms: int = Field(default=300_000, ge=0, le=86_400_000)
    """Leadership is given back to preferred leaders this often, in passes of at most 1,000 elections; 0: only on
    request (Kafka's leader.imbalance.check.interval.seconds, and auto.leader.rebalance.enable)."""
    leader_imbalance_percentage: int | None = Field(default=None, ge=0, le=100)
    """... only to brokers that others stand in for in more than this share of the partitions they are preferred for
    (leader.imbalance.per.broker.percentage, which Kafka ignores since it has KRaft); unset: to all."""
    elects_last_known_leader: bool = True
    """With eligible leader replicas: a partition of which nobody is in sync or eligible is led by its last
    leader again when that one is back, though it may have lost what it acknowledged. False: nobody leads before an
    unclean election, and the log remembers all who were in sync since the ISR fell below `min.insync.replicas` (the
    switch useLastKnownLeaderInBalancedRecovery, which is always on in Kafka)."""
    unclean_election_interval_ms: int = Field(default=300_000, ge=0, le=86_400_000)
    """Partitions without a leader elect uncleanly this often where their topics allow it, in passes as above; 0: only
    on request (Kafka's unclean.leader.election.interval.ms)."""


class LogSettings(Group):
    """The metadata log on disk."""

    segment_bytes: int = Field(default=64 * _MEBIBYTE, ge=_MEBIBYTE, le=1024 * _MEBIBYTE)
    """Size at which a new segment file begins."""
    resident_bytes: int = Field(default=64 * _MEBIBYTE, ge=0, le=16_384 * _MEBIBYTE)
    """Memory for recent batches; for each since the last checkpoint 20 bytes more are kept."""
    checkpoint_bytes: int = Field(default=20 * _MEBIBYTE, ge=4096, le=16_384 * _MEBIBYTE)
    """A checkpoint is taken after this many bytes of log (Kafka's metadata.log.max.record.bytes.between.snapshots)."""
    checkpoint_interval_ms: int = Field(default=3_600_000, ge=0, le=604_800_000)
    """... or after this time, if anything was written; 0: never by time."""
    checkpoint_work_percent: int = Field(default=10, ge=1, le=100)
    """Share of the time for which a checkpoint that is being written is worked at, in pieces of a millisecond or two:
    what the least leaves to commits. A checkpoint of 1,000,000 partitions is 1 s of work, and so written within 10 to
    15 s; 2.5 s of work, within 30 s, where all of the state must be digested too; longer beside other work, for waiting
    counts as work, and while masses of changes commit: pauses are eight times as long then. 100: no pauses."""
    retention_bytes: int = Field(default=100 * _MEBIBYTE, ge=0, le=2**50)
    """Older checkpoints, and the log before the oldest one kept, are removed while all of them together take more than
    this (Kafka's metadata.max.retention.bytes); the newest checkpoint always stays."""
    retention_ms: int = Field(default=604_800_000, ge=0, le=2**50)
    """... and when the newest record that goes with them is older than this (Kafka's metadata.max.retention.ms)."""


class HttpSettings(Group):
    """The HTTP API."""

    bind: HostPort | None = None
    """host:port to listen on; unset: this node's `http` address in `voters`."""
    unix_socket: Annotated[Path, AfterValidator(checked_path)] | None = None
    """Path of a Unix socket that is served, too, for the user that this process runs as (mode 600): he asks there
    without a secret (see `access.uids`). 107 bytes at most, in a directory that nobody else may write to."""
    body_bytes_max: int = Field(default=8 * _MEBIBYTE, ge=1024, le=256 * _MEBIBYTE)
    """Largest request body of a list of many things. Any other is 64 KiB at most."""
    bodies_bytes_max: int = Field(default=128 * _MEBIBYTE, ge=1024, le=16_384 * _MEBIBYTE)
    """Bytes of all request bodies that are announced or read, and not answered yet: one more is answered 429. With an
    authorizer one principal has a quarter of them, and all have five eighths, but for nodes, super users and the user
    that runs this process. A body of `body_bytes_max` always fits where there is no other."""
    connections_max: int = Field(default=8_192, ge=16, le=1_000_000)
    """Connections that may be open at once: one more is answered 429 and closed. Each takes an open file, so they are
    fewer where the system lets the process open fewer than these and 512. Connections on which nobody has yet shown
    that he may ask have a quarter of the places. With an authorizer one principal has a quarter, too, and all have five
    eighths, but for nodes, super users and the user that runs this process. One more takes the place of the one that
    was silent for longest, of the address, or principal, that has most."""
    connections_per_address_max: int = Field(default=4_096, ge=1, le=1_000_000)
    """Connections that may be open at once from one address, of IPv6 from one network of 64 bits. All programs on one
    machine share one, and so do those behind a proxy."""
    connections_per_second_max: int = Field(default=0, ge=0, le=1_000_000)
    """New connections in a second (Kafka's max.connection.creation.rate), and as many at once as `quotas` lets through.
    One more is answered 429 and closed. 0: any number. For single addresses client quotas say as much."""
    head_timeout_ms: int = Field(default=10_000, ge=100, le=600_000)
    """Time the head of a request (line, headers, empty line) may take, from the connection's beginning or, behind
    another request, from its first byte. Then the answer is 408, and the connection is closed. It is closed, too, when
    nobody has shown in that time that he may ask."""
    read_timeout_ms: int = Field(default=10_000, ge=100, le=600_000)
    """Time a read may take, waiting for its turn included."""
    forward_timeout_ms: int = Field(default=40_000, ge=100, le=900_000)
    """Time a standby waits for the active controller's answer to a request that it passed on."""
    feed_wait_max_ms: int = Field(default=30_000, ge=100, le=600_000)
    """Longest time a fetch of the metadata feed may wait for something new."""
    feed_chunk_bytes_max: int = Field(default=8 * _MEBIBYTE, ge=65_536, le=64 * _MEBIBYTE)
    """Most bytes that one answer of the feed, or one piece of a checkpoint, carries; one batch is always sent whole."""
    feed_cache_bytes: int = Field(default=32 * _MEBIBYTE, ge=0, le=4096 * _MEBIBYTE)
    """Bytes of the feed's answers kept, to be sent to many followers."""
    followers_max: int = Field(default=2_000, ge=1, le=100_000)
    """Fetches of the feed that may wait or stream at once."""


class TlsSettings(Group):
    """TLS on the HTTP API, between the voters, and on what this process asks of others. Name all files, on all
    controllers, or none. They are looked at again when they have changed: new connections use what is new, and those
    that stand end when the certificate shown for them has ended, or its CA is trusted no more."""

    cert_file: Path | None = None
    """This node's certificate in PEM, with those between it and a CA. It is for the names and addresses in `voters`,
    and names this controller by a URI, `quorate://CLUSTER_ID/controller/ID`: by that the other voters know it."""
    key_file: Path | None = None
    """Its key in PEM, without a password, for its owner alone (mode 600)."""
    ca_files: tuple[Path, ...] = ()
    """CAs in PEM: of all nodes, this one included, and of the clients. Several, while one takes over from another."""
    client_auth: Literal["none", "optional", "required"] = "optional"
    """Whether clients may show a certificate of the CAs, or must. One that they show and that is not to be trusted is
    refused in any case but `none`."""

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        check_paths(self.paths, is_server=True)
        return self

    @property
    def paths(self) -> TlsPaths:
        """The files."""
        return TlsPaths(self.cert_file, self.key_file, self.ca_files)

    @property
    def is_on(self) -> bool:
        """Whether TLS is spoken."""
        return self.cert_file is not None

    def url(self, address: object) -> str:
        """The base URL of an HTTP API at an address."""
        return f"{'https' if self.is_on else 'http'}://{address}"


class LoggingSettings(Group):
    """The process's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is said."""
    format: Literal["json", "console"] = "json"
    """One JSON object a line, or text for people."""


class ControllerSettings(BaseSettings):
    """Everything a controller process is told."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter=ENVIRONMENT_NESTING,
    )

    node_id: int = Field(ge=0)
    """Which of `voters` this process is."""
    directory: Path
    """Metadata directory, made before the first start: `quorate format directory`."""
    cluster_id: str | None = Field(default=None, min_length=1)
    """Cluster that the directory must be of; unset: whatever it says."""
    voters: tuple[ConfiguredVoter, ...] = Field(min_length=1, max_length=15)
    """All controllers, this one included; the same on each of them."""
    shared_secret_file: Path | None = None
    """File with what the voters prove to know to each other, and what HTTP clients send as `Authorization: Bearer`: at
    least 32 characters, the same on all nodes, for its owner alone (mode 600; root's may be lent to a group with 640).
    A second line is a secret that is believed, too, while one takes the place of the other. A changed file is read
    within a second; a wrong one is not used. Beyond loopback it is needed, and TLS (see `access.insecure`)."""
    quorum: QuorumSettings = Field(default_factory=QuorumSettings)
    brokers: BrokerSessionSettings = Field(default_factory=BrokerSessionSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    policies: PolicySettings = Field(default_factory=PolicySettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings)
    maintenance: MaintenanceSettings = Field(default_factory=MaintenanceSettings)
    tokens: TokenSettings = Field(default_factory=TokenSettings)
    access: AccessSettings = Field(default_factory=AccessSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    tls: TlsSettings = Field(default_factory=TlsSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    logging: LoggingSettings = Field(default_factory=LoggingSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)

    @model_validator(mode="after")
    def _check_voters(self) -> Self:
        ids = [voter.id for voter in self.voters]
        if len(set(ids)) != len(ids):
            raise ValueError(f"voters {ids} name a node twice")
        if self.node_id not in ids:
            raise ValueError(f"node_id {self.node_id} is not among the voters {ids}")
        addresses = [str(address) for voter in self.voters for address in (voter.quorum, voter.http)]
        unknown = [voter.id for voter in self.voters if voter.directory_id is None]
        if unknown and self.quorum.kraft_version == 1:
            raise ValueError(f"voters {unknown} have no directory_id, which quorum.kraft_version 1 needs")
        twice = {address for address in addresses if addresses.count(address) > 1}
        if twice:
            raise ValueError(f"voters use {', '.join(sorted(twice))} more than once")
        return self

    @model_validator(mode="after")
    def _check_reach(self) -> Self:
        has_secret = self.shared_secret_file is not None
        if self.access.authorizer == "acl" and not has_secret:
            raise ValueError("access.authorizer acl needs a shared_secret_file: controllers know each other by it")
        addresses = [self.http_bind, *(one for voter in self.voters for one in (voter.quorum, voter.http))]
        far = next((address for address in addresses if not address.is_loopback), None)
        lacking = [] if has_secret else ["shared_secret_file"]
        if not self.access.insecure:
            lacking += [] if self.tls.is_on else ["tls.cert_file, tls.key_file and tls.ca_files"]
            lacking += [] if self.access.authorizer == "acl" else ['access.authorizer = "acl" with access.super_users']
            lacking += ["or, where the network is trusted with everything, access.insecure = true"] if lacking else []
        if far is not None and lacking:
            raise ValueError(f"{far} is no loopback address, which needs {'; '.join(lacking)}")
        return self

    @property
    def voter(self) -> ConfiguredVoter:
        """This node among the voters."""
        return next(voter for voter in self.voters if voter.id == self.node_id)

    @property
    def http_bind(self) -> Address:
        """The address on which this process serves HTTP."""
        return self.http.bind or self.voter.http
