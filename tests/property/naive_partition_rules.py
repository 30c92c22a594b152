"""The rules of ``controller.partitions.rules`` for one partition at a time, on plain lists: slow, and easy to check."""

from __future__ import annotations

from typing import Any

from quorate.controller.partitions.rules import RuleSettings
from quorate.scripts.conformance_runner.kinds.partition_cases import PartitionCase


def naive_change(case: PartitionCase, settings: RuleSettings) -> dict[str, Any]:
    """What changes, in the form of the conformance vectors' records; {} = nothing."""
    isr = case.isr if case.target_isr is None else case.target_isr
    replicas = case.replicas if case.target_replicas is None else case.target_replicas
    removing = case.removing if case.target_removing is None else case.target_removing
    adding = case.adding if case.target_adding is None else case.target_adding
    recovering = case.is_recovering if case.target_is_recovering is None else case.target_is_recovering
    isr, replicas, removing, adding = _completed(isr, replicas, removing, adding)

    elr = _eligible(case, settings, isr)
    remaining_isr, eligible = set(isr), set(elr)
    leader, is_unclean = _elected(case, settings, isr, replicas, elr)
    has_moved = leader != case.leader
    if is_unclean:
        isr, elr = [leader], set()
        recovering = recovering or not case.is_recovering
    elif has_moved and leader in elr:
        isr, elr = [leader], elr - {leader}
    if not settings.is_elr_enabled:
        elr = set()
    last_known = case.last_known_elr

    change: dict[str, Any] = {}
    if is_unclean or (isr != case.isr and (isr or settings.is_elr_enabled)):
        change["isr"] = isr
    lost_member = bool(set(case.isr) - set(isr)) and "isr" in change
    if has_moved or set(case.replicas) - set(replicas) or (settings.metadata_version < 12 and lost_member):
        change["leader"] = leader
    if elr != set(case.elr):
        change["elr"] = sorted(elr)
    if not settings.elects_last_known_leader:
        last_known = [] if is_unclean else _last_known_members(case, settings, remaining_isr, eligible)
    elif settings.is_elr_enabled and "leader" in change:
        last_known = (last_known or [case.leader]) if leader < 0 else []
    if sorted(last_known) != sorted(case.last_known_elr):
        change["last_known_elr"] = sorted(last_known)
    if recovering != case.is_recovering:
        change["leader_recovery_state"] = "RECOVERING" if recovering else "RECOVERED"
    if replicas and replicas != case.replicas:
        change["replicas"] = replicas
    if sorted(removing) != sorted(case.removing):
        change["removing_replicas"] = sorted(removing)
    if sorted(adding) != sorted(case.adding):
        change["adding_replicas"] = sorted(adding)
    directories = _directories(case, replicas)
    if settings.metadata_version >= 17 and replicas and directories != case.directories:
        change["directories"] = directories
    return change


def _completed(
    isr: list[int], replicas: list[int], removing: list[int], adding: list[int]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Target state after the reassignment has completed, if it does."""
    new_isr = [broker for broker in isr if broker not in removing]
    new_replicas = [broker for broker in replicas if broker not in removing]
    if not adding and not removing:
        return isr, replicas, removing, adding
    if removing and (not new_isr or not new_replicas):
        return isr, replicas, removing, adding
    if not set(adding) <= set(new_isr):
        return isr, replicas, removing, adding
    if len(adding) < len(removing) and not set(new_replicas) <= set(new_isr):
        return isr, replicas, removing, adding
    return new_isr, new_replicas, [], []


def _eligible(case: PartitionCase, settings: RuleSettings, isr: list[int]) -> set[int]:
    """The ELR before the election."""
    if not settings.is_elr_enabled:
        return set(case.elr)
    if len(isr) >= case.min_isr:
        return set()
    return (set(case.elr) | set(case.isr)) - set(isr) - case.unclean_shutdown


def _elected(
    case: PartitionCase, settings: RuleSettings, isr: list[int], replicas: list[int], elr: set[int]
) -> tuple[int, bool]:
    """Who leads, and whether that is an unclean election."""

    def is_valid(broker: int) -> bool:
        return broker in (isr or elr) and broker in case.acceptable

    if case.election == "PREFERRED" and replicas and is_valid(replicas[0]):
        return replicas[0], False
    if is_valid(case.leader):
        return case.leader, False
    for broker in replicas:
        if is_valid(broker):
            return broker, False
    known = case.last_known_elr
    may_elect_known = settings.is_elr_enabled and settings.elects_last_known_leader
    if may_elect_known and not isr and not elr and len(known) == 1 and known[0] in case.acceptable:
        return known[0], known[0] != case.leader
    if case.election == "UNCLEAN":
        for broker in replicas:
            if broker in case.acceptable:
                return broker, broker != case.leader
    return -1, False


def _last_known_members(case: PartitionCase, settings: RuleSettings, isr: set[int], elr: set[int]) -> list[int]:
    """The last known ELR where it is a memory only; ``isr`` and ``elr`` as they are before the election."""
    if not settings.is_elr_enabled or len(isr) >= case.min_isr:
        return []
    return list({*case.last_known_elr, *case.elr, *case.isr} - isr - elr)


def _directories(case: PartitionCase, replicas: list[int]) -> list[str]:
    own = dict(zip(case.replicas, case.directories, strict=True))
    default = case.default_directory or ""
    return [case.set_directories.get(broker, own.get(broker, default.replace("*", str(broker)))) for broker in replicas]
