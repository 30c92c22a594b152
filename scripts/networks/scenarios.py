"""The network scenarios that a cluster must stand: each with its claim, and what is expected of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.networks.links import DOWN, WIRE, Rule
from quorate.scripts.networks.network import VirtualNetwork
from quorate.scripts.networks.site import CLIENTS
from quorate.scripts.networks.stage import Act, NetworkStage

#: What holds in every scenario.
ALWAYS: Final = (
    Expectation(name="wrong_histories", meaning="histories of what clients saw that no order explains", at_most=0),
    Expectation(name="undecided_histories", meaning="topics whose history was too long to decide", at_most=0),
    Expectation(name="lost_writes", meaning="acknowledged writes that are gone", at_most=0),
    Expectation(name="nodes_that_differ", meaning="controllers whose state differs at one offset", at_most=0),
    Expectation(name="frames_lost_by_overload", meaning="frames that were lost because the switch was slow", at_most=0),
)
#: The connection table of the middle-box is kept that long without a word; in the field it is minutes.
_IDLE_S: Final = 5.0
_FLAP_S: Final = 1.2
#: Well below a broker's session, so that nobody need be fenced.
_BAD_S: Final = (0.5, 4.0)
_CALM_S: Final = (0.2, 2.5)

Setting = Callable[[VirtualNetwork], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario.

    Attributes:
        run: what happens, on a stage that is steady and under load; it measures.
        seconds: how long the fault lasts, if nobody says otherwise.
        prepare: what stands in the network before anything is started.
    """

    name: str
    claim: str
    seconds: float
    run: Callable[[float], Act]
    expectations: tuple[Expectation, ...]
    prepare: Setting = lambda network: None

    @property
    def all_expectations(self) -> tuple[Expectation, ...]:
        return (*self.expectations, *ALWAYS)


def _next_write(at_most: float) -> Expectation:
    return Expectation(name="next_write_s", meaning="until the next write is acknowledged, s", at_most=at_most)


def _every_client(at_most: float) -> Expectation:
    meaning = "until each standing client has had a write acknowledged, s"
    return Expectation(name="every_client_s", meaning=meaning, at_most=at_most)


def _fenced(at_most: float) -> Expectation:
    return Expectation(name="fenced", meaning="times that a broker was fenced (all are alive)", at_most=at_most)


def _elections(at_most: float) -> Expectation:
    return Expectation(name="elections", meaning="elections", at_most=at_most)


# --- something breaks, and is mended ---------------------------------------------------------------------


def _switch_outage(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        stage.event("fault", f"the switch is off, for {seconds:g} s", stage.network.all(DOWN))
        await asyncio.sleep(seconds)
        back = stage.event("repair", "the switch is on", stage.network.heal())
        await stage.writes_again(back)

    return run


def _black_hole(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        leader = await stage.leader()
        gone = stage.event(
            "fault", f"all frames from and to {leader}, which leads, are lost", stage.network.cut(leader)
        )
        await stage.writes_again(gone)
        await stage.last_until(gone + seconds)

    return run


def _isolated(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        leader = await stage.leader()
        gone = stage.network.cut(leader, stage.controllers)
        stage.event("fault", f"{leader}, which leads, reaches clients and brokers, but no controller", gone)
        await stage.writes_again(gone)
        await stage.last_until(gone + seconds)

    return run


def _one_way(seconds: float, *, is_deaf: bool) -> Act:
    async def run(stage: NetworkStage) -> None:
        leader = await stage.leader()
        others = [name for name in stage.network.places if name != leader]
        gone = stage.network.set({(name, leader) if is_deaf else (leader, name): DOWN for name in others})
        stage.event("fault", f"all frames {'to' if is_deaf else 'from'} {leader}, which leads, are lost", gone)
        await stage.writes_again(gone)
        await stage.last_until(gone + seconds)

    return run


def _flapping(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        leader = await stage.leader()
        cycles = max(1, round(seconds / (2 * _FLAP_S)))
        stage.event("fault", f"the cable of {leader}, which leads, is out for {_FLAP_S} s, {cycles} times")
        back = 0.0
        for _ in range(cycles):
            stage.network.cut(leader)
            await asyncio.sleep(_FLAP_S)
            back = stage.network.heal()
            await asyncio.sleep(_FLAP_S)
        stage.event("repair", "the cable holds", back)
        await stage.writes_again(back)

    return run


# --- middle-boxes ----------------------------------------------------------------------------------------


def _controller_pairs(network: VirtualNetwork) -> list[tuple[str, str]]:
    return list(combinations([name for name in network.places if name.startswith("controller-")], 2))


def _forgotten(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        leader = await stage.leader()
        stage.event("fault", f"middle-boxes forget connections that were silent for {_IDLE_S:g} s; {seconds:g} s pass")
        await asyncio.sleep(seconds)
        await stage.kill(leader)

    return run


def _lost_table(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        await asyncio.sleep(seconds)
        leader = await stage.leader()
        followers = [name for name in stage.controllers if name != leader]
        forgotten = sum(stage.network.forget(*pair)[1] for pair in combinations(followers, 2))
        stage.event("fault", f"the middle-boxes between the followers lose their tables: {forgotten} connections")
        await stage.kill(leader)

    return run


# --- a bad network for a while ---------------------------------------------------------------------------


def _under(rule: Rule, what: str) -> Callable[[float], Act]:
    def lasting(seconds: float) -> Act:
        async def run(stage: NetworkStage) -> None:
            begun = stage.event("fault", f"every link {what}, for {seconds:g} s", stage.network.all(rule))
            await asyncio.sleep(seconds)
            ended = stage.event("repair", "the links are wires again", stage.network.all(WIRE))
            stage.note_writes(begun, ended)
            await stage.writes_again(ended)

        return run

    return lasting


# --- weather ---------------------------------------------------------------------------------------------


def _weather(seconds: float) -> Act:
    async def run(stage: NetworkStage) -> None:
        end = time.monotonic() + seconds
        back = end
        while time.monotonic() < end:
            what, rules = stage.rng.choice(_WEATHERS)(stage)
            stage.event("fault", what, stage.network.set(rules))
            await asyncio.sleep(stage.rng.uniform(*_BAD_S))
            back = stage.event("repair", "the links are wires again", stage.network.heal())
            await asyncio.sleep(stage.rng.uniform(*_CALM_S))
        await stage.writes_again(back)

    return run


Weather = Callable[[NetworkStage], tuple[str, dict[tuple[str, str], Rule]]]


def _machine_away(stage: NetworkStage) -> tuple[str, dict[tuple[str, str], Rule]]:
    places = stage.network.places
    away = stage.rng.choice([name for name in places if name != CLIENTS])
    return f"{away} is cut off", {pair: DOWN for pair in permutations(places, 2) if away in pair}


def _halves(stage: NetworkStage) -> tuple[str, dict[tuple[str, str], Rule]]:
    """Two parts, whole or in one direction only; clients and brokers are on either side."""
    places = stage.network.places
    one = set(stage.rng.sample(sorted(places), stage.rng.randint(1, len(places) - 1)))
    is_one_way = stage.rng.random() < 0.5
    cut = {pair: DOWN for pair in permutations(places, 2) if pair[0] in one and pair[1] not in one}
    if not is_one_way:
        cut |= {(target, source): DOWN for source, target in cut}
    names = ", ".join(sorted(one))
    return f"nothing passes {f'from {names} to' if is_one_way else f'between {names} and'} the others", cut


def _rough(stage: NetworkStage) -> tuple[str, dict[tuple[str, str], Rule]]:
    """Each direction of each link is bad in a way of its own."""
    rng = stage.rng
    rules = {
        pair: Rule(loss=rng.choice((0.0, 0.1, 0.5)), delay_ms=rng.choice((0.0, 20.0, 150.0)), jitter_ms=20.0)
        for pair in permutations(stage.network.places, 2)
    }
    return "every link loses and delays as it likes", rules


_WEATHERS: Final[tuple[Weather, ...]] = (_machine_away, _halves, _halves, _rough)

_ALL: Final = (
    Scenario(
        "switch-outage",
        "after the switch was off, a write is acknowledged within 3 s of its return",
        30.0,
        _switch_outage,
        (_next_write(3.0),),
    ),
    Scenario(
        "leader-black-hole",
        "nothing comes from or to the leader's machine any more: others take writes within 2 s",
        10.0,
        _black_hole,
        (_next_write(2.0), _fenced(0)),
    ),
    Scenario(
        "leader-isolated",
        "a leader that clients reach and no controller acknowledges nothing: others do within 2 s",
        10.0,
        _isolated,
        (_next_write(2.0), _fenced(0)),
    ),
    Scenario(
        "leader-deaf",
        "a leader that is heard and hears nobody is replaced within 3 s",
        10.0,
        lambda seconds: _one_way(seconds, is_deaf=True),
        (_next_write(3.0), _fenced(0)),
    ),
    Scenario(
        "leader-mute",
        "a leader that hears and is heard by nobody is replaced within 2 s",
        10.0,
        lambda seconds: _one_way(seconds, is_deaf=False),
        (_next_write(2.0), _fenced(0)),
    ),
    Scenario(
        "forgotten-link",
        "middle-boxes forget idle connections; when the leader is killed, the others elect within 3 s",
        12.0,
        _forgotten,
        (_next_write(3.0),),
        lambda network: network.guard(_controller_pairs(network), _IDLE_S),
    ),
    Scenario(
        "lost-flow-table",
        "middle-boxes between followers lose their tables as the leader is killed: the others elect within 3 s",
        2.0,
        _lost_table,
        (_next_write(3.0),),
        lambda network: network.guard(_controller_pairs(network), math.inf),
    ),
    Scenario(
        "loss",
        "every link loses 30 % of its frames: no wrong answer, and no broker that lives is fenced",
        300.0,
        _under(Rule(loss=0.3), "loses 30 % of its frames"),
        (_fenced(0), _next_write(3.0)),
    ),
    Scenario(
        "delay",
        "every link takes 200 ms, 400 ms there and back: no election, and no broker is fenced",
        60.0,
        _under(Rule(delay_ms=200.0), "takes 200 ms"),
        (_elections(0), _fenced(0), _next_write(3.0)),
    ),
    Scenario(
        "reordering",
        "a quarter of the frames is late by 20 ms and a twentieth arrives twice: no election, no broker is fenced",
        60.0,
        _under(Rule(delay_ms=2.0, jitter_ms=2.0, reorder=0.25, reorder_ms=20.0, duplicate=0.05), "reorders"),
        (_elections(0), _fenced(0), _next_write(3.0)),
    ),
    Scenario(
        "flapping-cable",
        "the leader's cable is out again and again: a write is acknowledged within 3 s of its last return",
        20.0,
        _flapping,
        (_next_write(3.0), _fenced(0)),
    ),
    Scenario(
        "weather",
        "parts of the network fail at random, for some seconds each: no wrong answer, nobody is fenced",
        120.0,
        _weather,
        (_next_write(3.0), _fenced(0)),
    ),
)

#: By name, in the order in which ``all`` runs them.
SCENARIOS: Final[Mapping[str, Scenario]] = {scenario.name: scenario for scenario in _ALL}
