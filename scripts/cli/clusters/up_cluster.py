"""Chooses the cluster for `quorate up`: the one in the directory, moved to other ports if requested, or a new one.

Everything that can be refused is looked at before anything is thrown away or made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.scripts.cluster.left_over import end_left_over
from quorate.scripts.cluster.lending import require_not_run
from quorate.scripts.cluster.making import Ports, logs_directory, make_fresh, make_twin, remove, require_disposable
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan, DamagedPlan
from quorate.scripts.cluster.ports import PortInUse
from quorate.scripts.terminal.arguments import whole_number

BASE_PORT: Final = 18_080
CONTROLLERS: Final = 3
BROKERS: Final = 3
_BROKERS_MAX: Final = 100
_TWIN_CHOICES: Final = ("live", "all", "none")


@dataclass(frozen=True, slots=True)
class WantedCluster:
    """The cluster that was asked for; None: nothing was said."""

    directory: Path
    fresh: bool = False
    source: Path | None = None
    brokers: str | None = None
    controllers: int | None = None
    base_port: int | None = None
    is_insecure: bool = False


def find_or_make(wanted: WantedCluster, say: Callable[[str], None]) -> ClusterPlan:
    """The cluster in the directory, made now if there is none.

    Raises:
        ClusterError: it is not as wanted, runs already, or cannot be made; nothing was changed, but that processes
            which nobody supervised any more were ended.
        StorageError, ReplayError, ImageNotAvailable: the source of a twin cannot be read.
    """
    require_not_run(wanted.directory)
    for sentence in end_left_over(logs_directory(wanted.directory)):
        say(sentence)
    try:
        known = None if wanted.fresh else ClusterPlan.load(wanted.directory)
    except DamagedPlan as error:
        # No other command has this way out, and none should hear of it: it throws the cluster away.
        raise ClusterError(f"{error.what}: start over with --fresh, or use another --dir") from error
    if known is not None:
        return _known(known, wanted, say)
    if wanted.source is not None:
        return _twin(wanted, wanted.source, say)
    plan = make_fresh(
        wanted.directory,
        _ports(wanted),
        wanted.controllers or CONTROLLERS,
        _broker_count(wanted.brokers),
        lambda plan: _prepare(plan, wanted, say),
        is_secured=not wanted.is_insecure,
    )
    say(f"formatted cluster {plan.cluster_id} in {wanted.directory}")
    return plan


def _known(known: ClusterPlan, wanted: WantedCluster, say: Callable[[str], None]) -> ClusterPlan:
    options = {"--from": wanted.source, "--brokers": wanted.brokers, "--controllers": wanted.controllers}
    given = [name for name, value in options.items() if value is not None]
    given += ["--insecure"] if wanted.is_insecure and known.is_secured else []
    if given:
        raise ClusterError(
            f"{wanted.directory} holds cluster {known.cluster_id} already, and {' and '.join(given)} "
            f"{'is' if len(given) == 1 else 'are'} for a new one: start over with --fresh, or use another --dir"
        )
    plan = known if wanted.base_port is None else known.on_ports(_ports(wanted).take)
    _require_ports(plan)
    if known.is_secured:
        from quorate.scripts.certificates.local_authority import renew_local

        for name in renew_local(wanted.directory):
            say(f"the certificate of {name} was to end soon, and has been renewed")
    if plan != known:
        plan.save(wanted.directory)
        say(f"cluster {known.cluster_id} in {wanted.directory} moves to the ports from {wanted.base_port} on")
    else:
        say(f"cluster {known.cluster_id} in {wanted.directory} goes on")
    return plan


def _twin(wanted: WantedCluster, source: Path, say: Callable[[str], None]) -> ClusterPlan:
    if wanted.brokers not in (None, *_TWIN_CHOICES):
        raise ClusterError(f"--brokers {wanted.brokers!r}: a twin plays {', '.join(_TWIN_CHOICES)}")
    if wanted.controllers is not None:
        raise ClusterError("--controllers is for a cluster without --from: a twin has three controllers")
    if wanted.fresh and source.resolve().is_relative_to(wanted.directory.resolve()):
        raise ClusterError(f"--from {source} lies in {wanted.directory}, which --fresh would throw away")
    say(f"reading {source}")
    plan = make_twin(
        wanted.directory,
        source,
        _ports(wanted),
        wanted.brokers or "live",
        lambda one: say(str(one)),
        lambda plan: _prepare(plan, wanted, say),
        is_secured=not wanted.is_insecure,
    )
    played = sum(len(group.ids) for group in plan.brokers)
    say(f"made cluster {plan.cluster_id}, a twin of {plan.source_cluster_id}, with {played} of its brokers played")
    return plan


def _prepare(plan: ClusterPlan, wanted: WantedCluster, say: Callable[[str], None]) -> None:
    """Look at what is left to look at, then make room."""
    _require_ports(plan)
    directory = wanted.directory
    if wanted.fresh and directory.exists() and require_disposable(directory):
        say(f"--fresh: throwing away what is in {directory}")
        remove(directory)


def _ports(wanted: WantedCluster) -> Ports:
    return Ports.from_base(BASE_PORT if wanted.base_port is None else wanted.base_port)


def _require_ports(plan: ClusterPlan) -> None:
    try:
        plan.require_ports()
    except PortInUse as error:
        raise ClusterError(f"{error} --base-port N takes others, from N on") from error


def _broker_count(text: str | None) -> int:
    if text is None:
        return BROKERS
    count = whole_number(text, _BROKERS_MAX)
    if count is not None:
        return count
    raise ClusterError(f"--brokers {text[:100]!r}: a fresh cluster has a number of brokers from 0 to {_BROKERS_MAX}")
