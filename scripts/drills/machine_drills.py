"""Drills on the machines of controllers: disks that fill, tear and slow down, clocks that jump, links that break."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.scripts.drills.drill import VOTES_AGAIN, Drill, healthy_again, outage
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.load import longest_wait_ms
from quorate.scripts.drills.machine_faults import MachineFaults
from quorate.scripts.drills.outcome import Expectation
from quorate.snapshots.checkpoints.moments import Moment

_HOUR_MS: Final = 3_600_000.0
_TORN: Final = b"a batch of which only the beginning reached the disk"


async def full_disk(environment: DrillEnvironment) -> None:
    """The active controller's disk takes no byte more: it stops, and says nothing that does not hold."""
    node = await environment.active()
    environment.event("fault", f"controller {node}'s disk is full")
    faults(environment, node, MachineFaults(is_full=True))
    code = await environment.process(node).wait(DEADLINE_S)
    environment.event("seen", f"controller {node} ended with exit code {code}")
    await environment.load.more()
    faults(environment, node, MachineFaults())
    started = await environment.restart(environment.controllers[node])
    await environment.settle(started)


async def slow_disk(environment: DrillEnvironment) -> None:
    """A standby whose syncs take half a second: the others are a majority without it."""
    node = await environment.standby()
    environment.event("fault", f"every sync of controller {node} takes 500 ms")
    faults(environment, node, MachineFaults(sync_delay_ms=500))
    await environment.load.more(60)
    healed = environment.event("repair", f"controller {node}'s disk is quick again")
    faults(environment, node, MachineFaults())
    await environment.until_voting()
    await environment.settle(healed)


async def clock_jump(environment: DrillEnvironment) -> None:
    """The active controller's wall clock leaps to and fro, without an election; then it dies an hour ahead."""
    node, epoch = await environment.active(), (await environment.status()).quorum.epoch
    for ahead, text in ((-_HOUR_MS, "an hour behind"), (0.0, "right"), (_HOUR_MS, "an hour ahead")):
        environment.event("fault" if ahead else "repair", f"controller {node}'s clock is {text}")
        faults(environment, node, MachineFaults(clock_ahead_ms=ahead))
        await environment.load.more(30)
    environment.measure("elections", (await environment.status()).quorum.epoch - epoch)
    killed = await environment.kill(environment.controllers[node])
    written = len(environment.load.acknowledged)
    await environment.load.more(30)
    faults(environment, node, MachineFaults())
    healed = await environment.restart(environment.controllers[node])
    await environment.settle(healed)
    environment.measure("kill_outage_ms", longest_wait_ms(environment.load.times, killed, environment.load.times[-1]))
    active = await environment.active()
    times = _times(environment.directory(active))
    environment.measure("times_backwards", sum(later < earlier for earlier, later in pairwise(times)))
    now = await _topics_at(environment, active, times[-1])
    environment.measure(
        "hidden_writes", len([name for name in environment.load.acknowledged[written:] if name not in now])
    )


def _times(directory: Path) -> list[int]:
    """Of the batches of a log, in their order."""
    segments = [file for file in find_files(directory) if not file.is_checkpoint]
    return [batch.header.timestamp for file in segments for batch in iter_batches(file)]


async def _topics_at(environment: DrillEnvironment, node: int, time_ms: int) -> set[str]:
    """The topics that there were at a time of a controller's log, as it tells: another may not have come to it."""
    names: set[str] = set()
    after: str | None = ""
    async with environment.client_of([environment.controllers[node]], at=str(Moment(time_ms=time_ms))) as client:
        while after is not None:
            page = await client.list_topics(after=after)
            names |= {topic.name for topic in page.topics}
            after = page.next_after
    return names


async def bit_flip(environment: DrillEnvironment) -> None:
    """A bit of a stopped standby's log is not what it was: it neither votes nor serves until it has repaired itself."""
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    path = environment.newest_segment(node)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    environment.event("fault", f"one bit at byte {len(data) // 2} of {path.name} of controller {node} is flipped")
    started = await environment.restart(environment.controllers[node])
    await environment.load.more()
    await environment.votes_again(node, started)
    if not list(path.parent.glob("*.damaged")):
        raise DrillBroken(f"controller {node} set nothing aside: it did not notice")
    await environment.settle(started)


async def torn_tail(environment: DrillEnvironment) -> None:
    """A write that was cut short: it is taken off, and nothing else."""
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    with environment.newest_segment(node).open("ab") as file:
        file.write(_TORN)
    environment.event("fault", f"half a batch at the end of controller {node}'s log")
    started = await environment.restart(environment.controllers[node])
    await environment.votes_again(node, started)
    await environment.settle(started)


async def partition(environment: DrillEnvironment, *, is_two_way: bool) -> None:
    """The active controller hears nobody; two-way: and nobody hears it."""
    node = await environment.active()
    others = tuple(other for other in environment.controllers if other != node)
    environment.event("fault", f"controller {node} hears none of the others")
    faults(environment, node, MachineFaults(deaf_to=others))
    if is_two_way:
        environment.event("fault", f"the others do not hear controller {node}")
        for other in others:
            faults(environment, other, MachineFaults(deaf_to=(node,)))
    await environment.until(lambda s: s.quorum.active_id not in (None, node), "another controller is active")
    await environment.load.more()
    healed = environment.event("repair", "all links are whole")
    for one in environment.controllers:
        faults(environment, one, MachineFaults())
    await environment.until_voting()
    await environment.settle(healed)


def faults(environment: DrillEnvironment, node: int, now: MachineFaults) -> None:
    """Let a controller's machine fail so from now on."""
    now.save(environment.workplace / f"faults-{node}.json")


def _faulty(
    name: str, hypothesis: str, run: Callable[[DrillEnvironment], Awaitable[None]], *expected: Expectation
) -> Drill:
    return Drill(name, hypothesis, (*expected, healthy_again(20_000)), run, "rigs", is_faulty=True)


DRILLS: Final = (
    _faulty(
        "full-disk",
        "the active controller's disk is full: it ends, another goes on, nothing acknowledged is lost",
        full_disk,
        outage(3_000),
    ),
    _faulty("slow-disk", "a standby's disk is slow: nobody waits for it", slow_disk, outage(1_000)),
    _faulty(
        "clock-jump",
        "the active controller's clock leaps an hour behind, back and ahead: no election; it dies an hour ahead, and"
        " times in the log do not fall",
        clock_jump,
        outage(1_000),
        Expectation(name="elections", meaning="elections", at_most=0),
        Expectation(name="kill_outage_ms", meaning="longest wait of a write after the kill, ms", at_most=1_000),
        Expectation(name="times_backwards", meaning="batches that are earlier than the one before", at_most=0),
        Expectation(name="hidden_writes", meaning="later writes that the state at the log's time lacks", at_most=0),
    ),
    Drill(
        "bit-flip",
        "one bit of a standby's log is flipped: it sets the log aside, repairs itself from the others, and votes again",
        (outage(1_000), VOTES_AGAIN, healthy_again(20_000)),
        bit_flip,
        "destroys",
    ),
    Drill(
        "torn-tail",
        "half a batch lies at the end of a standby's log: it is cut off, and the node votes at once",
        (outage(1_000), VOTES_AGAIN, healthy_again(20_000)),
        torn_tail,
        "destroys",
    ),
    _faulty(
        "one-way-partition",
        "the active controller is heard and hears nobody: it stops leading, and another takes over",
        partial(partition, is_two_way=False),
        outage(5_000),
    ),
    _faulty(
        "two-way-partition",
        "the active controller is cut off: the others go on, and it follows when the links are back",
        partial(partition, is_two_way=True),
        outage(5_000),
    ),
)
