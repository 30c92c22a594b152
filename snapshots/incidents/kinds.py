"""Names of what a change was, where it was no loss of a broker (those are ``brokers.LOSSES``), and of how runs end."""

from __future__ import annotations

from typing import Final

CREATED: Final = "created"
#: It was so in the checkpoint that the history begins with.
BASE: Final = "base"
UNCLEAN: Final = "unclean_election"
LAST_KNOWN: Final = "last_known_leader_election"
#: A leader that was neither in the ISR nor eligible: whatever brokers did before, the election is what loses data.
RISKY: Final = (UNCLEAN, LAST_KNOWN)
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

#: What a change can be by itself.
OWN_CAUSES: Final = (
    CREATED,
    BASE,
    UNCLEAN,
    LAST_KNOWN,
    REASSIGNMENT,
    PREFERRED,
    ELECTED,
    LAGGED,
    CAUGHT_UP,
    ASSIGNED_DIRECTORIES,
    UNCLEAN_STOP,
)

#: How something that lasts can end, or begin, without a change of the partition: its topic's removal, another value of
#: min.insync.replicas; or it lasts still.
TOPIC_REMOVED: Final = "topic_removed"
MIN_ISR_CHANGED: Final = "min_isr_changed"
OPEN: Final = "open"
ENDS: Final = (TOPIC_REMOVED, MIN_ISR_CHANGED, OPEN)

#: The config by which a topic, or the cluster's default, allows unclean elections.
UNCLEAN_ALLOWED: Final = "unclean.leader.election.enable"
