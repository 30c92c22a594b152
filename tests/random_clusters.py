"""Random clusters for the planner: racks of unequal size or none, skewed placements, brokers in all roles."""

import random

import numpy as np

from quorate.controller.planning.cluster import BrokerRole, Brokers, ClusterLayout


def random_cluster(seed: int) -> ClusterLayout:
    """Return the cluster of a seed: up to nine brokers, four racks, five replicas, 150 partitions."""
    chance = random.Random(seed)
    broker_count, rack_count = chance.randint(1, 9), chance.randint(0, 4)
    racks = {
        100 + one: f"r{int(rack_count * chance.random() ** 1.5)}" if rack_count else None for one in range(broker_count)
    }
    roles = {one: chance.choice([BrokerRole.TAKES] * 5 + [BrokerRole.KEEPS, BrokerRole.DRAINS]) for one in racks}
    partitions = chance.randint(1, chance.choice([5, 40, 150]))
    replicas_max, skew = chance.randint(1, min(broker_count, 5)), 3 * chance.random()
    assignment = []
    for _ in range(partitions):
        replicas = chance.randint(1, replicas_max) if chance.random() < 0.5 else replicas_max
        order = sorted(racks, key=lambda one: chance.random() * (1 + skew * (one - 100)))
        assignment.append(order[:replicas])
    sizes = np.array([chance.random() * 100 for _ in assignment]) if chance.random() < 0.2 else None
    return ClusterLayout.of(Brokers.of(racks, roles), assignment, sizes=sizes)
