"""Chooses the directory on which to found the quorum again, and says what is kept and what may be lost. Pure.

The seed is the one with the highest epoch at the end of its log, then the longest log: of any majority of voters the
best by this order holds every record that was acknowledged (Raft, section 5.4). With fewer than a majority at hand
nobody can tell what the others acknowledged among themselves, and this says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory, SurveyPart
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.terminal.output import format_time


class RunningController(SurveyPart):
    """A running controller's account of itself."""

    url: str
    node_id: int
    epoch: int
    high_watermark: int
    active_id: int | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The conclusions from a survey."""

    seed: SurveyedDirectory
    #: All voters, as far as they are known.
    voters: tuple[int, ...]
    #: Voters whose directories are at hand and remember everything.
    intact: tuple[int, ...]
    #: The highest that anybody knew, in votes and logs.
    highest_epoch: int
    highest_offset: int
    #: End of what somebody knew to be committed.
    known_commit: int
    #: No record that was acknowledged can be missing from the seed.
    is_complete: bool
    #: In words, the gravest first.
    sentences: tuple[str, ...]


def judge(
    holdings: Sequence[SurveyedDirectory],
    answers: Sequence[RunningController] = (),
    wanted_seed: str | None = None,
    as_left: Collection[int] | None = None,
) -> Judgement:
    """Choose the seed and say what follows from it.

    Args:
        wanted_seed: path of the directory to take in any case.
        as_left: controllers whose directories here are as they left them when they last ran; None: all. No file tells
            that: any other directory may be a copy from before, and is no memory of what its controller acknowledged.

    Raises:
        RecoveryError: directories of several clusters, none that a quorum could be founded on, or not the wanted one.
    """
    _require_one_cluster(holdings)
    generation = max((one.generation for one in holdings), default=0)
    usable = [one for one in holdings if one.digest is not None and one.generation == generation]
    if not usable:
        reasons = "; ".join(problem for one in holdings for problem in one.damage) or "nothing was looked at"
        raise RecoveryError(f"no directory holds a state that a quorum could be founded on: {reasons}")
    best = max(usable, key=lambda one: (one.end_epoch, one.end_offset, one.is_intact, one.commit or 0))
    seed = _wanted(usable, wanted_seed) if wanted_seed is not None else best
    voters = _voters(holdings, answers, seed)
    whole = {one.node_id for one in usable if one.is_intact and (as_left is None or one.node_id in as_left)}
    intact = tuple(voter for voter in voters if voter in whole)
    commits = [one.commit or 0 for one in usable] + [answer.high_watermark for answer in answers]
    known_commit = max([*commits, seed.start_offset])
    is_majority = len(intact) > len(voters) // 2
    is_complete = is_majority and _rank(seed) >= _rank(best) and known_commit <= seed.end_offset
    epochs = [one.end_epoch for one in holdings] + [one.vote_epoch or 0 for one in holdings]
    sentences = (
        *_losses(seed, best, known_commit, is_complete, voters, intact),
        *_kept(seed, _committed_end(seed, best, usable, answers)),
        *(_not_as_left(one, seed) for one in usable if one.is_intact and one.node_id not in whole),
        *(line for one in holdings if one is not seed for line in _left_behind(one, seed, generation)),
        *(f"{one.name}: {problem}" for one in holdings for problem in one.damage),
        *(f"{one.name} is in use: it may hold more by now" for one in holdings if one.is_in_use),
    )
    return Judgement(
        seed=seed,
        voters=voters,
        intact=intact,
        highest_epoch=max([*epochs, generation, *(answer.epoch for answer in answers)]),
        highest_offset=max([*(one.end_offset for one in holdings), known_commit]),
        known_commit=known_commit,
        is_complete=is_complete,
        sentences=sentences,
    )


def _rank(holding: SurveyedDirectory) -> tuple[int, int]:
    return holding.end_epoch, holding.end_offset


def _require_one_cluster(holdings: Sequence[SurveyedDirectory]) -> None:
    by_cluster = {one.cluster_id: one.path for one in holdings if one.cluster_id is not None}
    if len(by_cluster) > 1:
        (first, path), (second, other) = list(by_cluster.items())[:2]
        raise RecoveryError(f"{path} is of cluster {first}, {other} of cluster {second}: give those of one cluster")


def _wanted(usable: Sequence[SurveyedDirectory], path: str) -> SurveyedDirectory:
    for one in usable:
        if one.path == path:
            return one
    raise RecoveryError(f"{path} cannot be the seed: it is not among the directories that hold a state")


def _voters(
    holdings: Sequence[SurveyedDirectory], answers: Sequence[RunningController], seed: SurveyedDirectory
) -> tuple[int, ...]:
    if seed.voters:
        return seed.voters
    told = next((one.voters for one in holdings if one.voters), ())
    seen = {one.node_id for one in holdings if one.node_id is not None} | {answer.node_id for answer in answers}
    return told or tuple(sorted(seen))


def _losses(
    seed: SurveyedDirectory,
    best: SurveyedDirectory,
    known_commit: int,
    is_complete: bool,
    voters: Sequence[int],
    intact: Sequence[int],
) -> list[str]:
    """The records that the seed lacks, surely or perhaps."""
    end = seed.end_offset
    said = []
    if _rank(seed) < _rank(best):
        said.append(
            f"{best.name} is better than the seed that was asked for: it ends at {best.end_offset} in epoch"
            f" {best.end_epoch}, the seed at {end} in epoch {seed.end_epoch}"
        )
    if known_commit > end:
        said.append(
            f"LOST: records {end} to {known_commit - 1} ({known_commit - end:,}) were committed and are in no"
            " directory that was given"
        )
    here = f"{len(intact)} of {len(voters)} voters' directories are here and whole"
    if is_complete:
        said.append(f"{here}: no record that was acknowledged is missing from the seed")
    elif len(intact) > len(voters) // 2:
        said.append(f"{here}, and not all that was acknowledged is in the seed")
    else:
        missing = ", ".join(str(voter) for voter in voters if voter not in intact)
        said.append(
            f"{here}, which is no majority: what voters {missing} acknowledged without the seed beyond offset"
            f" {max(end, known_commit)}, after {format_time(seed.end_time_ms)}, may be lost: nobody here can tell"
        )
    return said


def _committed_end(
    seed: SurveyedDirectory,
    best: SurveyedDirectory,
    usable: Sequence[SurveyedDirectory],
    answers: Sequence[RunningController],
) -> int:
    """Up to where the records of the seed's log are known to be those that were committed.

    A log that is not the best may part from what was committed behind what it knew itself. The best holds whatever
    others of its epoch, or of earlier ones, knew to be committed.
    """
    if _rank(seed) < _rank(best):
        return max(seed.start_offset, seed.commit or 0)
    told = [answer.high_watermark for answer in answers if answer.epoch <= seed.end_epoch]
    known = max([seed.start_offset, *(one.commit or 0 for one in usable), *told])
    return min(known, seed.end_offset)


def _kept(seed: SurveyedDirectory, committed_end: int) -> list[str]:
    """The state of the seed's records, each of which is counted once: committed for sure, or perhaps."""
    start, end = seed.start_offset, seed.state_offset
    known_end = min(committed_end, end)
    parts = [
        (start, known_end, "known to have been committed"),
        (known_end, end, "not known to have been: perhaps nobody was told that they hold"),
    ]
    told = "; ".join(f"{_records(low, high)}, {what}" for low, high, what in parts if low < high)
    said = [f"kept, up to offset {end - 1}: {told}" if told else f"kept: the seed's checkpoint at offset {end}"]
    if end < seed.end_offset:
        said.append(f"not kept: {_records(end, seed.end_offset)}, an open transaction, which is aborted")
    return said


def _records(start: int, end: int) -> str:
    """Of a log; the end is exclusive."""
    return f"record {start}" if end == start + 1 else f"records {start} to {end - 1} ({end - start:,})"


def _not_as_left(one: SurveyedDirectory, seed: SurveyedDirectory) -> str:
    """The worth of a directory that may be a copy from before."""
    before = "" if one is seed else f", {seed.end_offset - one.end_offset:,} records before the seed"
    return (
        f"{one.name} ends at {format_time(one.end_time_ms)}{before}, and is taken for a copy: it counts for what it"
        f" holds. If controller {one.node_id} has not run since, say so: --as-left {one.node_id}"
    )


def _left_behind(one: SurveyedDirectory, seed: SurveyedDirectory, generation: int) -> list[str]:
    """The records of another directory that the seed does not have."""
    if one.generation < generation:
        return [f"{one.name} is of generation {one.generation}, before the quorum was last rebuilt: left out"]
    if one.end_epoch == seed.end_epoch:
        return []  # one of the two is the beginning of the other
    shared = common_end(one, seed)
    if shared is None or shared >= one.end_offset:
        return []
    records = f"{one.end_offset - shared:,} records from offset {shared} on, up to epoch {one.end_epoch}"
    told = "a later leader did not have them either, so nobody was told that they hold"
    return [f"{one.name} holds {records}, that the seed does not have: {told}"]


def common_end(one: SurveyedDirectory, other: SurveyedDirectory) -> int | None:
    """Offset up to which two logs are the same; None where they have no stretch in common to compare.

    Logs that have a record of one epoch at one offset are the same up to there, so they part at the end of the last
    epoch that both have.
    """
    ends, other_ends = _epoch_ends(one), _epoch_ends(other)
    shared = ends.keys() & other_ends.keys()
    if not shared:
        return None
    epoch = max(shared)
    return min(ends[epoch], other_ends[epoch])


def _epoch_ends(holding: SurveyedDirectory) -> dict[int, int]:
    starts = [one.start_offset for one in holding.epochs[1:]]
    return (
        {one.epoch: end for one, end in zip(holding.epochs, [*starts, holding.end_offset], strict=True)}
        if (holding.epochs)
        else {}
    )
