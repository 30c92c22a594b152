"""Names of what a partition's change was, where it was no loss of a broker (those are ``brokers.LOSSES``)."""

from __future__ import annotations

from typing import Final

CREATED: Final = "created"
#: It was so in the checkpoint that the history begins with.
BASE: Final = "base"
UNCLEAN: Final = "unclean_election"
LAST_KNOWN: Final = "last_known_leader_election"
REASSIGNMENT: Final = "reassignment"
PREFERRED: Final = "preferred_election"
ELECTED: Final = "election"
LAGGED: Final = "follower_lagged"
CAUGHT_UP: Final = "replicas_caught_up"
ASSIGNED_DIRECTORIES: Final = "directories_assigned"
#: Out of the ELR, as a broker registers again that did not stop cleanly: its log may have lost its end.
UNCLEAN_STOP: Final = "broker_stopped_uncleanly"
#: The topic was deleted.
REMOVED: Final = "topics_removed"
