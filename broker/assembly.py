"""The composition root of a process of brokers: everything that it consists of, put together once.

``assemble`` is told what the settings say, and where the process runs (``broker.host.BrokerEnvironment``): on a
machine, or in the simulation of the whole system, so that what is simulated is what runs. What only a real process has
stands around it: sockets and clock in ``broker.machine``, signals in ``broker.process``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.broker.environment import HostWatch
from quorate.broker.host import BrokerEnvironment, BrokerHost
from quorate.broker.http.access import AclAccess, SecretAccess
from quorate.broker.http.http_api import BrokerHttp
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.metadata.digest_watch import ImageDigestWatch
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.replicas.peers import PeerAddresses
from quorate.broker.replicas.rehearsal import ExchangeTiming, RehearsalReplicas
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.broker.settings import BrokerSettings, parse_peers
from quorate.controller.identity.secrets import Secrets


@dataclass(frozen=True, slots=True)
class BrokerAssembly:
    """A process of brokers that is complete, and has not begun."""

    host: BrokerHost
    http: BrokerHttp
    digest_watch: ImageDigestWatch

    async def run(self, endpoint: Endpoint | None, *watches: HostWatch) -> None:
        """Play the brokers until all of them are over. ``endpoint``: where ``http`` is served; None: nowhere.

        ``watches`` run beside them, and beside the one that compares digests.

        Raises:
            QuorateError: as ``BrokerHost.run``.
        """
        await self.host.run(endpoint, self.digest_watch, *watches)


def assemble(
    settings: BrokerSettings,
    environment: BrokerEnvironment,
    publishers: Sequence[MetadataPublisher] = (),
    replicas: ReplicaManager | None = None,
    shared_secrets: Secrets | None = None,
) -> BrokerAssembly:
    """Put a process of brokers together. On the event loop that it will run on.

    Args:
        replicas: what keeps the ISRs; None: the rehearsal's model, which moves no data.
        shared_secrets: what its HTTP API asks of who changes anything where no authorizer decides; None: nothing.
    """
    access: SecretAccess | AclAccess = SecretAccess(shared_secrets)
    if settings.access.authorizer == "acl":
        access = AclAccess(settings.access, lambda: host.loader.cluster_id)
        publishers = (*publishers, access)
    host = BrokerHost(settings, environment, publishers, replicas or _rehearsal(settings, environment))
    watch = ImageDigestWatch(host.digests, environment.feeds, host.loader.feed_name, environment.machine)
    return BrokerAssembly(host, BrokerHttp(host, access), watch)


def _rehearsal(settings: BrokerSettings, environment: BrokerEnvironment) -> RehearsalReplicas:
    model = settings.rehearsal
    return RehearsalReplicas(
        StandInLog(model.partition_bytes, model.write_bytes_per_s),
        Pace(model.copy_bytes_per_s),
        ExchangeTiming(
            settings.replicas.lag_time_max_ms, settings.replicas.interval_ms, settings.replicas.retry_max_ms
        ),
        environment.peers,
        PeerAddresses(parse_peers(settings.peers)),
        environment.machine,
    )
