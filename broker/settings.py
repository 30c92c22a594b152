"""Settings of one broker process, which may play several brokers; each with its unit, default and limits.

Times end in ``_ms``, sizes in ``_bytes``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from quorate.broker.access_settings import BrokerAccessSettings
from quorate.broker.setting_group import BrokerSettingsGroup, MadeByPrograms
from quorate.controller.api.kept_files import secret_file
from quorate.controller.api.tls_files import TlsFiles, TlsPaths, check_paths
from quorate.metadata_log.loopback import is_loopback

ENVIRONMENT_PREFIX: Final = "QUORATE_BROKER_"
ENVIRONMENT_NESTING: Final = "__"
_MEBIBYTE: Final = 1024 * 1024
#: Brokers of one process; 200 are a supported rehearsal.
BROKERS_MAX: Final = 1_000
_BROKER_ID_MAX: Final = 2**31 - 1
_PEERS_MAX: Final = 100_000
#: Listeners of a broker's own.
LISTENERS_MAX: Final = 16
#: Name of the listener that a broker process registers by itself: its own HTTP endpoint.
HTTP_LISTENER: Final = "HTTP"
_LISTENER: Final = re.compile(
    r"(?P<name>[A-Z][A-Z0-9_-]{0,63})://(?P<host>[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[0-9]{1,5})",
    re.ASCII,
)
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.-]{1,253}:[0-9]{1,5}", re.ASCII)
_ID_RANGE: Final = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)


def parse_ids(value: Any) -> Any:
    """``11-14,20`` as a list of ids; what is no text is left to the type.

    Raises:
        ValueError: not ids and ranges of ids, or too many.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if not isinstance(value, str):
        return value
    ids: list[int] = []
    for part in value.split(","):
        match = _ID_RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError("it must be ids and ranges of ids, like 11-14,20")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {part.strip()} ends before it begins")
        if len(ids) + last - first >= BROKERS_MAX:
            raise ValueError(f"one process plays at most {BROKERS_MAX} brokers")
        ids.extend(range(first, last + 1))
    return ids


def parse_peers(texts: Sequence[str]) -> dict[int, str]:
    """``11-13@127.0.0.1:18091`` and so on as host:port by broker id.

    Raises:
        ValueError: one of them has another form, or there are too many brokers.
    """
    peers: dict[int, str] = {}
    for text in texts:
        ids, _, address = text.partition("@")
        if _ADDRESS.fullmatch(address) is None:
            raise ValueError(f"{text[:100]!r} is not ids, @ and host:port, like 11-13@127.0.0.1:18091")
        peers |= dict.fromkeys(parse_ids(ids), address)
        if len(peers) > _PEERS_MAX:
            raise ValueError(f"more than {_PEERS_MAX} brokers are named")
    return peers


def parse_listeners(texts: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
    """``KV://10.0.0.5:7000`` and so on as name, host and port (Kafka's form of advertised.listeners).

    Raises:
        ValueError: one of them has another form, two have one name, or there are too many.
    """
    if len(texts) > LISTENERS_MAX:
        raise ValueError(f"{len(texts)} are named; a broker has at most {LISTENERS_MAX} listeners of its own")
    found: dict[str, tuple[str, str, int]] = {}
    for text in texts:
        match = _LISTENER.fullmatch(text)
        if match is None or not 0 < int(match["port"]) < 65_536:
            raise ValueError(f"{text[:100]!r} is not NAME://host:port, like KV://10.0.0.5:7000")
        name, host = match["name"], match["host"].strip("[]")
        if name in found or name == HTTP_LISTENER:
            raise ValueError(f"{text[:100]!r}: there is a listener {name} already")
        found[name] = (name, host, int(match["port"]))
    return tuple(found.values())


def parse_list(value: Any) -> Any:
    """Comma-separated text as a list; what is no text is left to the type."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


# Text from the environment or the command line comes as it is, not as JSON.
_BrokerId = Annotated[int, Field(ge=0, le=_BROKER_ID_MAX)]
_Ids = Annotated[tuple[_BrokerId, ...], NoDecode, BeforeValidator(parse_ids)]
_Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_list)]
_Paths = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(parse_list)]


class BrokerHttpSettings(BrokerSettingsGroup):
    """The process's own HTTP API. It listens on loopback only."""

    host: str = "127.0.0.1"
    """Loopback address to listen on."""
    port: int = Field(default=0, ge=0, le=65_535)
    """Port to listen on; 0: any free one, which the log names."""
    connections_max: int = Field(default=1_024, ge=16, le=1_000_000)
    """Connections that may be open at once: one more is answered 429 and closed. Each takes an open file, so they are
    fewer where the system lets the process open fewer than these and 192. Connections on which nobody has yet shown
    who he is have a quarter of the places; one more takes that of the one that was silent for longest. Where neither a
    secret nor an authorizer is set, whoever has asked for something has shown it; with an authorizer principals have
    shares as with controllers."""
    head_timeout_ms: int = Field(default=10_000, ge=100, le=600_000)
    """Time the head of a request (line, headers, empty line) may take, from the connection's beginning or, behind
    another request, from its first byte. Then the answer is 408, and the connection is closed. It is closed, too, when
    nobody has shown in that time who he is, and nothing is asked."""

    @field_validator("host")
    @classmethod
    def _check_host(cls, host: str) -> str:
        if not is_loopback(host):
            raise ValueError("it must be a loopback address")
        return host


class BrokerTlsSettings(BrokerSettingsGroup):
    """TLS with the controllers, with other broker processes, and on the process's own HTTP API. Files are looked at
    again when they have changed: new connections use what is new, and those that stand end when the certificate shown
    for them has ended, or its CA is trusted no more."""

    cert_file: Path | None = None
    """This process's certificate in PEM, with those between it and a CA: it is shown to the controllers, and the HTTP
    API is served with it, at `http.host`. Unset: the HTTP API is plain, and the controllers are shown none."""
    key_file: Path | None = None
    """Its key in PEM, without a password, for its owner alone (mode 600)."""
    ca_files: _Paths = ()
    """CAs in PEM: of controllers, brokers and clients. With them `host:port` in `controllers` is asked over TLS.
    Several, while one takes over from another."""
    client_auth: Literal["none", "optional", "required"] = "optional"
    """Whether clients of the HTTP API may show a certificate of the CAs, or must."""

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        check_paths(self.paths, is_server=self.cert_file is not None)
        return self

    @property
    def paths(self) -> TlsPaths:
        """The files."""
        return TlsPaths(self.cert_file, self.key_file, self.ca_files)

    def load(self) -> TlsFiles | None:
        """The certificates; None: no TLS is spoken.

        Raises:
            InvalidTlsFiles: they cannot be used.
        """
        if not self.ca_files:
            return None
        is_server, lets_show = self.cert_file is not None, self.client_auth != "none"
        return TlsFiles(self.paths, is_server=is_server, lets_clients_show=lets_show)


class LifecycleSettings(BrokerSettingsGroup):
    """Registration, heartbeats and shutdown."""

    heartbeat_interval_ms: int = Field(default=2_000, ge=10, le=600_000)
    """Time between two heartbeats, less up to a tenth so that brokers drift apart (Kafka's
    broker.heartbeat.interval.ms); well below the controllers' session timeout."""
    request_timeout_ms: int = Field(default=5_000, ge=50, le=600_000)
    """How long one request to the controllers may take."""
    retry_max_ms: int = Field(default=2_000, ge=100, le=600_000)
    """Longest wait before a request that failed is sent again; the waits double from 100 ms on."""
    registration_timeout_ms: int = Field(default=60_000, ge=100, le=3_600_000)
    """A process that has not caught up, or a broker that has not registered, by then gives up
    (Kafka's initial.broker.registration.timeout.ms)."""
    session_timeout_ms: int = Field(default=9_000, ge=100, le=3_600_000)
    """When no controller has answered for so long, publishers are told that none is known: the brokers may have been
    fenced. The controllers' `brokers.session_timeout_ms`; no less than `feed.wait_ms` and two seconds."""
    shutdown_timeout_ms: int = Field(default=30_000, ge=0, le=3_600_000)
    """A broker that is still leading partitions this long after it wanted to leave goes all the same."""
    directory_failure_timeout_ms: int = Field(default=30_000, ge=1, le=3_600_000)
    """A broker that could not tell the controllers for so long that a log directory of its own has failed ends, lest
    they count on replicas that it has lost (Kafka's log.dir.failure.timeout.ms)."""

    @model_validator(mode="after")
    def _check_heartbeats(self) -> Self:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms}, not shorter than session_timeout_ms, "
                f"{self.session_timeout_ms}: no session would last until the next heartbeat"
            )
        return self


class FeedSettings(BrokerSettingsGroup):
    """Following the metadata log."""

    wait_ms: int = Field(default=500, ge=10, le=30_000)
    """How long a controller holds back its answer when there is nothing new; a controller that is
    silent for two seconds longer is given up for another."""
    answer_bytes_max: int = Field(default=8 * _MEBIBYTE, ge=65_536, le=64 * _MEBIBYTE)
    """Most bytes of batches, or of one piece of a checkpoint, asked for at once."""
    retry_max_ms: int = Field(default=2_000, ge=50, le=600_000)
    """Longest wait between two rounds over all controllers when none of them serves."""


class ReplicaSettings(BrokerSettingsGroup):
    """The exchange between brokers: each process that follows tells each one that leads how far it is."""

    lag_time_max_ms: int = Field(default=30_000, ge=100, le=86_400_000)
    """A follower that was not level with its leader for so long, or silent, leaves the ISR; looked at twice in that
    time (Kafka's replica.lag.time.max.ms)."""
    interval_ms: int = Field(default=500, ge=10, le=60_000)
    """Time between two messages that have nothing new to say (Kafka's replica.fetch.wait.max.ms); at most a third of
    `lag_time_max_ms`."""
    timeout_ms: int = Field(default=5_000, ge=50, le=600_000)
    """A leader's process that does not answer for so long is spoken to anew."""
    retry_max_ms: int = Field(default=2_000, ge=50, le=600_000)
    """Longest wait before a process that cannot be reached is tried again; the waits double from 50 ms on."""

    @model_validator(mode="after")
    def _check_interval(self) -> Self:
        if 3 * self.interval_ms > self.lag_time_max_ms:
            raise ValueError(f"interval_ms is {self.interval_ms}, more than a third of {self.lag_time_max_ms}")
        return self


class RehearsalSettings(BrokerSettingsGroup):
    """The stand-in for data, for no data are moved. Every partition is taken to hold `partition_bytes` and to be
    written at `write_bytes_per_s`; a replica copies until it has what its leader has.
    """

    partition_bytes: int = Field(default=0, ge=0, le=2**60)
    """Size that every partition is taken to have."""
    copy_bytes_per_s: int = Field(default=0, ge=0, le=2**60)
    """Rate at which every replica is taken to copy, each on its own; 0: no limit. It can be changed while the process
    runs (`PUT /v1/rehearsal`)."""
    write_bytes_per_s: int = Field(default=0, ge=0, le=2**32)
    """Rate at which every partition is taken to be written. Followers that copy more slowly fall out of the ISR."""


class BrokerLoggingSettings(BrokerSettingsGroup):
    """The process's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is said."""
    format: Literal["json", "console"] = "json"
    """One JSON object a line, or text for people."""


class BrokerSettings(BaseSettings, metaclass=MadeByPrograms):
    """Everything a broker process is told.

    Raises:
        InvalidSettings: a value against its rule, or a name that no setting has.
    """

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter=ENVIRONMENT_NESTING,
    )

    ids: _Ids = Field(min_length=1, max_length=BROKERS_MAX)
    """Broker ids that this process plays: ids and ranges, like `11-14,20`."""
    controllers: _Names = Field(min_length=1, max_length=15)
    """host:port or base URLs of the controllers' HTTP API; any of them will do."""
    racks: _Names = ()
    """Racks of the brokers, in the order of `ids`: one for each (an empty one is none), one for all, or none."""
    log_directories: int = Field(default=1, ge=1, le=1_000)
    """Log directories of each broker. Those that are registered keep their ids; a start adds what is missing, as new
    disks do that take the place of failed ones. A broker that is registered with more keeps them."""
    is_imported: bool = False
    """Play the brokers as they are registered in the metadata, for a cluster made from another one's; `racks` must be
    unset. Those that are alive there go on as the incarnations that they are: nothing changes in the picture. Others,
    and those that have run here before, as `last_run_file` tells, come back as new ones, as every process that is
    started."""
    last_run_file: Path | None = None
    """File in which the process keeps how its brokers' last run ended, for its next start (Kafka's
    `.kafka_cleanshutdown`): a broker that was killed comes back as after a crash, one that left in good order as such.
    Unset: the metadata tell it as far as they can, where a broker that led nothing when it left counts as crashed."""
    peers: _Names = Field(default=(), max_length=_PEERS_MAX)
    """Where brokers are played that did not register it, by id, like `11-13@127.0.0.1:18091`.
    Brokers of ours register where their process is; imported ones keep the listeners they had."""
    listeners: _Names = ()
    """Where the brokers of this process serve what is theirs, registered for all to see: names and addresses, like
    `KV://10.0.0.5:7000`. A process that serves HTTP registers that as `HTTP` besides. Imported brokers keep theirs."""
    shared_secret_file: Path | None = None
    """File with the secret that the controllers' HTTP API asks for, or the token of this process's brokers where it
    asks who they are (`access.authorizer`); this process asks for the same of what changes anything here. A second line
    is believed here, too, while one takes the place of the other. When the file has changed it is read again within a
    second; a wrong one is not used, and the log says so. Unset: they are on loopback and ask for none."""
    http: BrokerHttpSettings = Field(default_factory=BrokerHttpSettings)
    tls: BrokerTlsSettings = Field(default_factory=BrokerTlsSettings)
    access: BrokerAccessSettings = Field(default_factory=BrokerAccessSettings)
    lifecycle: LifecycleSettings = Field(default_factory=LifecycleSettings)
    feed: FeedSettings = Field(default_factory=FeedSettings)
    replicas: ReplicaSettings = Field(default_factory=ReplicaSettings)
    rehearsal: RehearsalSettings = Field(default_factory=RehearsalSettings)
    logging: BrokerLoggingSettings = Field(default_factory=BrokerLoggingSettings)

    @field_validator("peers")
    @classmethod
    def _check_peers(cls, peers: tuple[str, ...]) -> tuple[str, ...]:
        parse_peers(peers)
        return peers

    @field_validator("listeners")
    @classmethod
    def _check_listeners(cls, listeners: tuple[str, ...]) -> tuple[str, ...]:
        parse_listeners(listeners)
        return listeners

    @model_validator(mode="after")
    def _check_brokers(self) -> Self:
        twice = sorted({id_ for id_ in self.ids if self.ids.count(id_) > 1})
        if twice:
            raise ValueError(f"ids names {', '.join(map(str, twice))} more than once")
        if len(self.racks) not in (0, 1, len(self.ids)):
            raise ValueError(f"racks has {len(self.racks)} names for {len(self.ids)} brokers")
        if self.is_imported and self.listeners:
            raise ValueError("listeners cannot be set for imported brokers: they keep theirs")
        if self.is_imported and self.racks:
            raise ValueError("racks cannot be set for imported brokers: they keep theirs")
        return self

    def load_secrets(self) -> Callable[[], tuple[bytes, ...]] | None:
        """The content of ``shared_secret_file``, as it is at the moment; None: no file is named.

        Raises:
            InvalidSettings: it cannot be read, others may use it, or it holds no secret.
        """
        return secret_file(self.shared_secret_file)

    def rack_of(self, broker_id: int) -> str | None:
        """The rack of a broker, None where none was given."""
        if not self.racks:
            return None
        rack = self.racks[0] if len(self.racks) == 1 else self.racks[self.ids.index(broker_id)]
        return rack or None
