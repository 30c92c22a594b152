"""The table of a voter's candidacy: the page shows it, voters take each of its edges, and no other is taken."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from quorate.metadata_log.transitions import WrongTransition, next_state
from quorate.quorum.elections.candidacy import STEPS, Candidacy, CandidacyEvent
from quorate.quorum.elections.elections import Elections, LogPosition, PreVoteAnswer
from tests.default_parts import quorum_timing

PAGE: Final = Path(__file__).parents[4] / "docs" / "architecture.md"
LEVEL: Final = LogPosition(3, 40)
Edge = tuple[Candidacy, CandidacyEvent]


def drawn() -> str:
    """The table as the page has it: a line for each event, a column for each state."""
    lines = [["what happens", *(state.value for state in Candidacy)], ["---"] * (1 + len(Candidacy))]
    for event in CandidacyEvent:
        following = [STEPS[state].get(event) for state in Candidacy]
        lines.append([event.value, *("" if state is None else state.value for state in following)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines).replace("|  |", "| |").replace("|  |", "| |")


class Traced(Elections):
    """Notes the edges that it takes."""

    def __init__(self, chance: Random) -> None:
        super().__init__(1, (0, 2), quorum_timing(), chance, 0.0)
        self.edges: set[Edge] = set()

    def _take(self, event: CandidacyEvent) -> None:
        self.edges.add((self._candidacy, event))
        super()._take(event)


def live(seed: int) -> set[Edge]:
    """One voter among others who may say anything at any time; the edges that it took."""
    chance, now = Random(seed), 0.0
    voter = Traced(chance)
    for _ in range(80):
        now += chance.choice((0.0, 0.01, 0.05, 0.5))
        if chance.random() < 0.15:
            end_it(voter, chance, now)
        else:
            go_on(voter, chance, now)
    return voter.edges


def go_on(voter: Elections, chance: Random, now: float) -> None:
    """What leads towards an election, or holds it back."""
    kind, peer = chance.randrange(7), chance.choice((0, 2))
    if kind == 0:
        voter.connected(peer, now)
    elif kind == 1:
        voter.disconnected(peer, now)
    elif kind == 2:
        answer = PreVoteAnswer(is_granted=chance.random() < 0.5, has_leader=False)
        voter.on_pre_vote_reply(peer, voter.round, answer, now)
    elif kind == 3:
        voter.on_pre_vote(LEVEL, LogPosition(3, chance.choice((39, 40, 41))), now)
    elif kind == 4:
        voter.tick(now)
    elif kind == 5:
        if voter.take_permission():
            voter.campaign_started(now)
    else:
        voter.vote_refused(peer, now)


def end_it(voter: Elections, chance: Random, now: float) -> None:
    """What is the end of all that led towards one, or its begin."""
    kind = chance.randrange(6)
    if kind == 0:
        voter.heard_leader(chance.choice((0, 2)), now)
    elif kind == 1:
        voter.leader_stopped(now)
    elif kind == 2:
        voter.epoch_changed()
    elif kind == 3:
        voter.vote_granted(now)
    elif kind == 4:
        voter.elected()
    else:
        voter.stepped_down(now)


def test_page_shows_the_table() -> None:
    assert drawn() in PAGE.read_text(encoding="utf-8"), f"docs/architecture.md lacks this table:\n{drawn()}"


def test_voters_take_every_edge_of_the_table() -> None:
    """None is there for show; and none that is missing is ever wanted, or a voter would end in an error."""
    taken: set[Edge] = set().union(*(live(seed) for seed in range(200)))

    assert taken == {(state, event) for state, edges in STEPS.items() for event in edges}


def test_edge_that_is_not_in_the_table_is_refused_with_both_names() -> None:
    missing = [(state, event) for state in Candidacy for event in CandidacyEvent if event not in STEPS[state]]

    assert missing
    for state, event in missing:
        with pytest.raises(WrongTransition, match=f"not in the state {state.name}: {event.name} "):
            next_state(STEPS, state, event)
