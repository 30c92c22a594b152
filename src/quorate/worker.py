"""Brokers with data of their own, inside any asyncio program::

    async with worker(settings, replicas) as one:
        await one.ready()

See docs/workers.md.
"""

from quorate.broker.access_settings import BrokerAccessSettings
from quorate.broker.host import BrokerReadiness, NotCaughtUp
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.replicas.isr_requests import IsrCounters
from quorate.broker.replicas.manager import ReplicaManager, ReplicaReport, Station
from quorate.broker.replicas.service import NotNoted, ServiceReplicas
from quorate.broker.setting_group import BrokerSettingsGroup
from quorate.broker.settings import (
    BrokerHttpSettings,
    BrokerLoggingSettings,
    BrokerSettings,
    BrokerTlsSettings,
    FeedSettings,
    LifecycleSettings,
    RehearsalSettings,
    ReplicaSettings,
)
from quorate.broker.worker import Worker, WorkerEnded, WorkerNotReady, WorkerSession, worker
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.snapshots.difference.local_changes import LocalReplica

__all__ = [
    "BrokerAccessSettings",
    "BrokerHttpSettings",
    "BrokerLoggingSettings",
    "BrokerReadiness",
    "BrokerSettings",
    "BrokerSettingsGroup",
    "BrokerTlsSettings",
    "FeedSettings",
    "InvalidSettings",
    "IsrCounters",
    "LifecycleSettings",
    "LifecycleState",
    "LocalReplica",
    "NotCaughtUp",
    "NotNoted",
    "RehearsalSettings",
    "ReplicaManager",
    "ReplicaReport",
    "ReplicaSettings",
    "ServiceReplicas",
    "Station",
    "Worker",
    "WorkerEnded",
    "WorkerNotReady",
    "WorkerSession",
    "worker",
]
