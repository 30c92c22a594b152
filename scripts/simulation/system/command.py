"""``scripts/simulate --system``: seeds and mutations of the whole system."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from quorate.scripts.simulation.quorum.patches import first_to_notice
from quorate.scripts.simulation.seed_runs import CTRL_C, SeedOutcome, SeedRuns, run_mutations, run_seeds
from quorate.scripts.simulation.system.mutations import MUTATIONS
from quorate.scripts.simulation.system.runner import SystemResult, run_system_seed
from quorate.scripts.simulation.system.scenarios.named import SYSTEM_SCENARIOS, run_system_scenario
from quorate.scripts.simulation.system.story import RunStory

#: Seeds tried for a mutation that no scenario notices.
MUTATION_SEEDS: Final = 300


def run_system_seeds(seeds: range, jobs: int, stories: Path) -> int:
    """Run the seeds and say what became of them; how many failed. The story of each that failed is in ``stories``."""

    def tell_failure(outcome: SeedOutcome[SystemResult]) -> None:
        print(f"{outcome.failure}\nseed {outcome.seed} failed; again with: {again(outcome.seed)}")
        print(f"its story: {story_path(stories, outcome.seed)}", flush=True)

    runs = run_seeds(partial(attempt, stories=stories), seeds, jobs, tell_failure)
    print(_summary(runs))
    if runs.is_broken_off:
        sys.exit(CTRL_C)
    return runs.failed


def again(seed: int) -> str:
    """The command that runs this seed, and no other."""
    return f"scripts/simulate --system --seeds 1 --seed {seed}"


def story_path(stories: Path, seed: int) -> Path:
    """The file for the story of a seed."""
    return stories / f"system-seed-{seed}.txt"


def attempt(seed: int, stories: Path) -> SeedOutcome[SystemResult]:
    """Run one seed of the system; what became of it. The story of one that failed is in ``stories``."""
    try:
        return SeedOutcome(seed, run_system_seed(seed), None)
    except Exception:  # noqa: BLE001  # whatever a seed dies of is its result
        failure = traceback.format_exc()
        _write_story(seed, stories, failure)
        return SeedOutcome(seed, None, failure)


def _write_story(seed: int, stories: Path, failure: str) -> None:
    """The same run again, this time with everything that happens in it."""
    story = RunStory()
    try:
        run_system_seed(seed, story)
        end = "the run did not fail again: it does not depend on its seed alone"
    except Exception as error:  # noqa: BLE001  # the same as before
        end = str(error)
    stories.mkdir(parents=True, exist_ok=True)
    text = "\n".join([again(seed), "", *story.lines, "", end, "", failure])
    story_path(stories, seed).write_text(text, encoding="utf-8")


def _summary(runs: SeedRuns[SystemResult]) -> str:
    results = runs.results
    return (
        f"{runs.done} seeds, {runs.failed} failed, {runs.seconds:.0f} s: "
        f"{sum(r.events for r in results):,} events in {sum(r.seconds for r in results):,.0f} virtual seconds, "
        f"{sum(r.records for r in results):,} records committed in {sum(r.epochs for r in results):,} epochs, "
        f"{sum(r.known_calls for r in results):,} calls of known and {sum(r.unknown_calls for r in results):,} of "
        f"unknown outcome, {sum(r.undecided_topics for r in results)} topics undecided, "
        f"{sum(r.states_compared + r.broker_images_compared for r in results):,} states compared, "
        f"{sum(r.checkpoints_loaded for r in results):,} checkpoints loaded"
    )


def run_system_scenarios(names: Sequence[str], seed: int, stories: Path) -> int:
    """Bring each of these situations about; how many failed."""
    failed = 0
    for name in names:
        story = RunStory()
        try:
            run_system_scenario(name, seed, story)
            print(f"scenario {name}, seed {seed}: holds")
        except Exception:  # noqa: BLE001  # whatever a scenario dies of is its result
            failed += 1
            again = f"scripts/simulate --system --scenario {name} --seed {seed}"
            print(f"{traceback.format_exc()}\nscenario {name} failed; again with: {again}")
            stories.mkdir(parents=True, exist_ok=True)
            path = stories / f"system-{name}-{seed}.txt"
            path.write_text("\n".join([again, "", *story.lines]), encoding="utf-8")
            print(f"its story: {path}")
    return failed


def run_system_mutations(jobs: int) -> int:
    """Turn each line of the table into its mistake, and say who noticed; how many nobody noticed."""
    return run_mutations(MUTATIONS, find_system_mutation, jobs, MUTATION_SEEDS)


def find_system_mutation(name: str) -> tuple[str, str | None]:
    """The scenario or seed that notices a mutation, and its words; None if none does."""
    runs: list[tuple[str, Callable[[], object]]] = [
        (f"scenario {scenario}", partial(run_system_scenario, scenario, 0)) for scenario in SYSTEM_SCENARIOS
    ]
    runs += [(f"seed {seed}", partial(run_system_seed, seed)) for seed in range(MUTATION_SEEDS)]
    return name, first_to_notice(MUTATIONS[name], runs)
