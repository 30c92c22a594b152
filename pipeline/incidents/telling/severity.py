"""The severity of incidents, and the worst of them: those to look at first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from quorate.snapshots.incidents.telling.incident import Incident

#: Acknowledged writes may be lost, or clients cannot work still.
CRITICAL: Final = "critical"
#: A process was lost, or clients could not work for a while.
MAJOR: Final = "major"
MINOR: Final = "minor"
SEVERITIES: Final = (CRITICAL, MAJOR, MINOR)

#: By kind, the worst first: what happened goes before what followed from it.
_OF_KIND: Final = {
    "unclean_election": CRITICAL,
    "last_known_leader_election": CRITICAL,
    "log_dirs_lost": CRITICAL,
    "broker_crash": MAJOR,
    "controller_failover": MAJOR,
    "leaderless": MAJOR,
    "under_min_isr": MAJOR,
    "broker_restarted": MINOR,
    "broker_session_lost": MINOR,
    "reassignment_open": MINOR,
    "isr_flapping": MINOR,
    "mass_change": MINOR,
    "reassignment_slow": MINOR,
    "controlled_shutdown": MINOR,
}
_PLACE: Final = {kind: place for place, kind in enumerate(_OF_KIND)}
#: Kinds that are critical as long as they last.
_WHILE_OPEN: Final = ("leaderless", "under_min_isr")


def severity(incident: Incident) -> str:
    """One of ``SEVERITIES``."""
    return CRITICAL if incident.is_open and incident.kind in _WHILE_OPEN else _OF_KIND[incident.kind]


def by_severity(told: Sequence[Incident]) -> list[Incident]:
    """The incidents, the worst first: by severity, then kind, then what is open, concerns most partitions, lasted."""
    return sorted(told, key=_rank)


def worst(told: Sequence[Incident], limit: int, of_each_kind: int = 2) -> list[Incident]:
    """The worst incidents, at most ``limit``; among them of each kind that there is its ``of_each_kind`` worst ones."""
    ranked = by_severity(told)
    kinds: dict[str, list[Incident]] = defaultdict(list)
    for incident in ranked:
        kinds[incident.kind].append(incident)
    chosen = {id(one) for mine in kinds.values() for one in mine[:of_each_kind]}
    for incident in ranked:
        if len(chosen) >= limit:
            break
        chosen.add(id(incident))
    return [incident for incident in ranked if id(incident) in chosen]


def _rank(incident: Incident) -> tuple[int, int, bool, int, timedelta, str, int]:
    lasted = timedelta() if incident.end is None else incident.end - incident.begin
    return (
        SEVERITIES.index(severity(incident)),
        _PLACE[incident.kind],
        not incident.is_open,
        -incident.partitions,
        -lasted,
        incident.cluster_id,
        incident.from_offset,
    )
