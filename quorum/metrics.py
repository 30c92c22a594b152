"""The counters of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class QuorumMetrics:
    """Counters since the process started."""

    elections_started: int = 0
    elections_won: int = 0
    leaderships_lost: int = 0
    appended_batches: int = 0
    committed_batches: int = 0
    disk_groups: int = 0
    messages_received: int = 0
    pauses_noticed: int = 0
    leaderships_given_up: int = 0
    checkpoints_installed: int = 0
