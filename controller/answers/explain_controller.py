"""One controller as the quorum sees it, the price of its loss, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from quorate.controller.answers.quorum_margin import quorum_without, reasons_against
from quorate.controller.api.answers.explain_models import (
    ExplainedController,
    ExplainedRemedy,
    ExplainedSymptom,
    RemedyCode,
    SymptomCode,
)
from quorate.controller.api.resources import ElectionsReply, QuorumReply, VoterReply
from quorate.controller.reads.verdict import voter_reasons
from quorate.controller.reads.voters import is_behind, majority_of

_CODES: Final[dict[str, SymptomCode]] = {
    "CONTROLLERS_UNREACHABLE": "CONTROLLERS_UNREACHABLE",
    "CONTROLLERS_NOT_VOTING": "CONTROLLERS_NOT_VOTING",
    "CONTROLLER_LAGS": "CONTROLLER_LAGS",
}


def explain_controller(quorum: QuorumReply, registered: Collection[int], node_id: int) -> ExplainedController:
    """One controller, and what its loss would mean.

    ``registered``: ids of the controllers that the log has registrations of.

    Raises:
        ApiError: INVALID_REQUEST, there is no such controller, or the state is an old one: no log says how the quorum
            was.
    """
    voter = next((one for one in quorum.voters if one.node_id == node_id), None)
    if voter is None and node_id in registered and not quorum.is_past:
        return ExplainedController(node_id=node_id, is_voter=False, voter=None, quorum=None, if_lost=[])
    margin = quorum_without(quorum, [node_id])
    return ExplainedController(
        node_id=node_id,
        is_voter=True,
        voter=voter,
        quorum=margin,
        if_lost=reasons_against(quorum, [node_id], margin),
    )


def symptoms_of(quorum: QuorumReply, voter: VoterReply | None) -> list[ExplainedSymptom]:
    """The things that are wrong with a controller, in the words of the verdict; the gravest first."""
    if voter is None:
        return []
    found = [
        _symptom(_CODES[reason.code], reason.message)
        for reason in voter_reasons(quorum.voters)
        if voter.node_id in reason.nodes
    ]
    if quorum.active_id is None:
        what = "no active controller is known: how this one is, nobody can say"
        found.insert(0, _symptom("NO_ACTIVE_CONTROLLER", what))
    return found


def symptoms_of_all(quorum: QuorumReply) -> list[ExplainedSymptom]:
    """The things that are wrong with any controller while there is an active one, in the words of the verdict."""
    return [_symptom(_CODES[reason.code], reason.message) for reason in voter_reasons(quorum.voters)]


def remedies_of_all(quorum: QuorumReply) -> list[ExplainedRemedy]:
    """Whatever is to be done about those."""
    ill = {node_id for reason in voter_reasons(quorum.voters) for node_id in reason.nodes}
    return [remedy for voter in quorum.voters if voter.node_id in ill for remedy in remedies_of(quorum, voter)]


def remedies_of(quorum: QuorumReply, voter: VoterReply | None) -> Iterator[ExplainedRemedy]:
    """Yield what to do about it."""
    if voter is None:
        return
    id_ = voter.node_id
    if quorum.active_id is None:
        yield from ways_to_an_active(quorum)
    elif voter.role == "unreachable":
        yield _remedy("START_CONTROLLER", f"start controller {id_}: it goes on where it was", id_)
        what = "only if its directory is lost: make one without a vote, with which it catches up and votes again"
        yield _remedy("REJOIN_CONTROLLER", what, id_, f"quorate recover rejoin --node-id {id_}")
    elif voter.vote_waits_for:
        for other in voter.vote_waits_for:
            what = f"start controller {other}: controller {id_} has no vote before it has answered the active one"
            yield _remedy("START_CONTROLLER", what, other)
    elif voter.role == "non-voter":
        yield _remedy("WAIT", f"controller {id_} recovers what it lost, and votes once it has", id_)
    elif is_behind(voter):
        yield _remedy("WAIT", f"controller {id_} catches up; if it does not, its disk or network is too slow", id_)


def left_without_active() -> ExplainedSymptom:
    """The symptom that everything has while nobody decides."""
    what = "no active controller is known: this is the state as it was left, and nobody elects leaders"
    return _symptom("NO_ACTIVE_CONTROLLER", what)


def ways_to_an_active(quorum: QuorumReply) -> Iterator[ExplainedRemedy]:
    """Yield what to do where nobody decides."""
    needed = f"{majority_of(quorum.voters)} of {len(quorum.voters)}"
    yield _remedy("START_CONTROLLER", f"start controllers until a majority runs, {needed}", None)
    what = "only if their directories are lost: found the quorum anew from what is left"
    yield _remedy("RECOVER_QUORUM", what, None, "quorate recover survey")


def _symptom(code: SymptomCode, message: str) -> ExplainedSymptom:
    return ExplainedSymptom(code=code, message=message, partitions=0, topics=0, share=0.0, causes=[], named=[])


def _remedy(code: RemedyCode, message: str, controller: int | None, command: str = "") -> ExplainedRemedy:
    return ExplainedRemedy(
        code=code,
        message=message,
        command=command,
        broker=None,
        controller=controller,
        led_again=0,
        replicas=0,
        elections=ElectionsReply(),
        risk="NONE",
    )
