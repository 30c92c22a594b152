"""Metrics of running processes, as benchmarks read them: how long loops stood still."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp

from quorate.scripts.cluster.ports import LOOPBACK

#: What is shorter is not in the metric's buckets.
_LEAST_S: Final = 0.01
_STANDSTILL: Final = re.compile(
    r'^quorate_(?:broker_)?loop_standstill_seconds_bucket\{cause="(\w+)",le="([^"]+)"\} (\S+)$', re.MULTILINE
)
#: Seconds: a process that is busy for longer is not well.
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class ProcessScrape:
    """The metrics of one process at one moment; counted since its start."""

    #: By cause and upper end in seconds, standstills up to that end.
    standstills: Mapping[tuple[str, float], float]


async def scrape_process(session: aiohttp.ClientSession, port: int) -> ProcessScrape:
    """The metrics of the process that serves HTTP on a port of this machine."""
    timeout = aiohttp.ClientTimeout(total=_PATIENCE_S)
    async with session.get(f"http://{LOOPBACK}:{port}/metrics", timeout=timeout) as answer:
        found = _STANDSTILL.findall(await answer.text())
    return ProcessScrape({(cause, float(end)): float(count) for cause, end, count in found})


def longest_standstill(before: ProcessScrape, after: ProcessScrape, cause: str) -> float:
    """Seconds that the longest of the standstills between two scrapes did not exceed; 0.01 if none was longer."""
    found: Counter[float] = Counter()
    for (of, end), count in after.standstills.items():
        if of == cause:
            found[end] = int(count - before.standstills.get((of, end), 0.0))
    # Cumulative: the first end that has them all.
    total = max(found.values(), default=0)
    return min((end for end, count in found.items() if count == total), default=_LEAST_S)
