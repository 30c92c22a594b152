"""Brokers with data of their own, inside any asyncio program::

    async with worker(settings, replicas) as one:
        await one.ready()

See docs/workers.md.
"""

from quorate.broker.host import BrokerReadiness, NotCaughtUp
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.replicas.service import HostedReplica, NotNoted, ServiceReplicas
from quorate.broker.settings import BrokerSettings
from quorate.broker.worker import Worker, WorkerEnded, WorkerNotReady, WorkerSession, worker

__all__ = [
    "BrokerReadiness",
    "BrokerSettings",
    "HostedReplica",
    "LifecycleState",
    "NotCaughtUp",
    "NotNoted",
    "ReplicaManager",
    "ServiceReplicas",
    "Worker",
    "WorkerEnded",
    "WorkerNotReady",
    "WorkerSession",
    "worker",
]
