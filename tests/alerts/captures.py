"""Runs drills and keeps what their processes' `/metrics` said meanwhile, as far as alert rules ask for it.

python -m tests.alerts.captures            all drills, into tests/data/watching
python -m tests.alerts.captures DRILL...   these

A drill is short where an alert is patient. So each half second of it is kept as one scrape of a Prometheus that scrapes
every 15 s: what lasts for 2 s in a drill lasts for a minute in its series. Rates are 30 times lower than they were.
And where a drill writes under a fault it goes on for ten seconds, which are five minutes; what was ended is started
after four seconds at the earliest, which are two minutes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.scripts.certificates.local_files import admin_tls
from quorate.scripts.cluster.making import Ports, make_fresh, make_twin
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import LOOPBACK, free_ports
from quorate.scripts.drills.environment import DEADLINE_S, DrillEnvironment
from quorate.scripts.drills.load import Load
from quorate.scripts.drills.places import GivenDirectory
from quorate.scripts.drills.runner import DRILLS, run_drill
from quorate.scripts.watching.files import RULES, content
from tests.alerts.expressions import asked_for

DIRECTORY: Final = Path(__file__).parents[1] / "data" / "watching"
#: The time between two scrapes in a drill, and the time that they are played with.
EVERY_S: Final = 0.5
PLAYED_S: Final = 15
_PATIENCE_S: Final = 0.45
_FAULT_S: Final = 10.0
_AWAY_S: Final = 4.0
_SUFFIX: Final = ".json.gz"
#: One process's answer: series as promtool writes it -> value; None: it did not answer.
Sample = Mapping[str, float] | None


class Target(NamedTuple):
    job: str
    instance: str
    url: str


def asked_by_rules() -> frozenset[str]:
    """Names of all samples that a rule reads, but for those that Prometheus makes itself."""
    rules = [rule for group in yaml.safe_load(content(RULES))["groups"] for rule in group["rules"]]
    return frozenset(name for rule in rules for name in asked_for(rule["expr"]).metrics) - {"up"}


def targets_of(plan: ClusterPlan) -> list[Target]:
    controllers = [
        Target("quorate-controllers", f"controller-{one.id}", f"https://{LOOPBACK}:{one.http_port}")
        for one in plan.controllers
    ]
    brokers = [
        Target("quorate-brokers", f"broker-{one.ids[0]}", f"https://{LOOPBACK}:{one.http_port}") for one in plan.brokers
    ]
    return controllers + brokers


async def scrape(session: aiohttp.ClientSession, target: Target, tls: TlsContexts, wanted: frozenset[str]) -> Sample:
    try:
        # As Prometheus, which looks at the files of its certificates each time that it connects.
        async with asyncio.timeout(_PATIENCE_S), session.get(f"{target.url}/metrics", ssl=tls()) as answer:
            if answer.status != 200:
                return None
            text = await answer.text()
    except (TimeoutError, aiohttp.ClientError, OSError):
        return None
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in wanted:
                labels = {**sample.labels, "job": target.job, "instance": target.instance}
                said = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
                found[f"{sample.name}{{{said}}}"] = sample.value
    return found


async def follow(plan: ClusterPlan, directory: Path, rows: list[list[Sample]], is_over: asyncio.Event) -> None:
    """One row of samples each half second, one sample for each target, until it is over."""
    targets, wanted = targets_of(plan), asked_by_rules() | {"quorate_cluster_verdict"}
    tls = admin_tls(directory)
    async with aiohttp.ClientSession() as session:
        due = time.monotonic()
        while not is_over.is_set():
            rows.append(list(await asyncio.gather(*(scrape(session, one, tls, wanted) for one in targets))))
            due += EVERY_S
            try:
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await is_over.wait()
            except TimeoutError:
                continue


def healthy_stretch(rows: list[list[Sample]]) -> list[list[Sample]]:
    """From the first to the last moment at which all answered, and one said that all is well."""

    def is_well(row: list[Sample]) -> bool:
        said = [sample for sample in row if sample is not None]
        verdicts = [value for one in said for name, value in one.items() if 'verdict="healthy"' in name]
        return len(said) == len(row) and any(verdicts)

    well = [at for at, row in enumerate(rows) if is_well(row)]
    return [] if not well else rows[well[0] : well[-1] + 1]


def series_of(targets: Iterable[Target], rows: list[list[Sample]]) -> dict[str, str]:
    """Series, as promtool writes them: values in the order of time, in runs. A target that is gone has stale ones."""
    found: dict[str, str] = {}
    for place, target in enumerate(targets):
        samples = [row[place] for row in rows]
        up = [float(sample is not None) for sample in samples]
        found[f'up{{instance="{target.instance}", job="{target.job}"}}'] = in_runs(up)
        names = sorted({name for sample in samples if sample is not None for name in sample})
        for name in names:
            if not name.startswith("quorate_cluster_verdict"):
                found[name] = in_runs([None if sample is None else sample.get(name) for sample in samples])
    return found


def in_runs(values: Iterable[float | None]) -> str:
    """`5x3` is four fives; what goes away is stale once, and then not there."""
    parts: list[str] = []
    for value, run in groupby(values):
        count = len(list(run))
        if value is None:
            parts += ["stale" if parts else "_", *([f"_x{count - 1}"] if count > 1 else [])]
        else:
            said = f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
            # No count may stand behind what is no number.
            parts += [f"{said}x{count - 1}"] if count > 1 and isfinite(value) else [said] * count
    return " ".join(parts)


async def last(self: Load, count: int = 20) -> None:
    """In place of `Load.more`: as many writes, and no fewer seconds than a fault is to last."""
    until = time.monotonic() + _FAULT_S
    await _MORE(self, count)

    async def look() -> bool | None:
        return time.monotonic() >= until or None

    await self._until(look, f"{_FAULT_S:g} s of the fault are over")


async def absence(environment: DrillEnvironment) -> None:
    """Until it is noticed that they are away who have ended."""
    ended = environment.begun + max((one.at_s for one in environment.events if one.kind == "fault"), default=0.0)

    async def look() -> bool | None:
        return time.monotonic() >= ended + _AWAY_S or None

    await environment.cluster.until(look, f"{_AWAY_S:g} s of absence are over", DEADLINE_S)


async def restart(self: DrillEnvironment, *nodes: LocalNode) -> float:
    """In place of `DrillEnvironment.restart`."""
    await absence(self)
    return await _RESTART(self, *nodes)


async def renew_controllers(self: DrillEnvironment, plan: ClusterPlan) -> None:
    """In place of `DrillEnvironment.renew_controllers`."""
    await absence(self)
    await _RENEW(self, plan)


_MORE: Final = Load.more
_RESTART: Final = DrillEnvironment.restart
_RENEW: Final = DrillEnvironment.renew_controllers


async def capture(name: str) -> dict[str, Any]:
    """Raises AssertionError where the drill does not come to its end."""
    drill = DRILLS[name]
    with tempfile.TemporaryDirectory(prefix="quorate-watching-") as made:
        directory = Path(made) / "var"
        ports = Ports.of(free_ports(2 * drill.controllers + drill.brokers + 4))
        if drill.source is None:
            plan = make_fresh(directory, ports, drill.controllers, drill.brokers, is_secured=True)
        else:
            plan = make_twin(directory, drill.source, ports, "all", is_secured=True)
            # A drill that would import is given what is imported already, and has the brokers that are there.
            drill = replace(drill, source=None, brokers=len(plan.members.broker_ids))
        rows: list[list[Sample]] = []
        is_over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(plan, directory, rows, is_over))
            try:
                outcome = await run_drill(drill, {}, lambda kept: None, GivenDirectory(directory, may_destroy=True))
            finally:
                is_over.set()
    # What it measures is longer than its limits, as its faults are. It has come to its end.
    assert outcome.verdict in ("passed", "failed"), f"{name}: {outcome.verdict}: {outcome.reason}"
    kept = healthy_stretch(rows)
    assert kept, f"{name}: it was never healthy"
    return {"drill": name, "scrapes": len(kept), "series": series_of(targets_of(plan), kept)}


def keep(name: str, found: Mapping[str, Any]) -> None:
    """A tenth of the bytes, the same ones for the same series."""
    DIRECTORY.mkdir(exist_ok=True)
    path_of(name).write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))


def kept_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path_of(name).read_bytes()))
    return found


def kept() -> set[str]:
    """Drills of which there are series."""
    return {path.name.removesuffix(_SUFFIX) for path in DIRECTORY.iterdir()}


def path_of(name: str) -> Path:
    return DIRECTORY / f"{name}{_SUFFIX}"


if __name__ == "__main__":
    Load.more = last  # type: ignore[method-assign]
    DrillEnvironment.restart = restart  # type: ignore[method-assign]
    DrillEnvironment.renew_controllers = renew_controllers  # type: ignore[method-assign]
    for chosen in sys.argv[1:] or DRILLS:
        found = asyncio.run(capture(chosen))
        keep(chosen, found)
        print(f"{chosen}: {found['scrapes']} scrapes of {len(found['series'])} series", flush=True)
