"""Replication state: followers report how far they are, and leaders keep the ISRs by those reports.

``follower`` and ``leader`` are the two sides without clock and I/O; ``exchange`` lets them speak; ``isr_book`` knows
which ISRs leaders would ask for, ``isr_requests`` asks. ``stand_in`` is what takes the place of data in a rehearsal.
"""

from quorate.broker.replicas.service import NotNoted, ServiceReplicas

__all__ = ["NotNoted", "ServiceReplicas"]
