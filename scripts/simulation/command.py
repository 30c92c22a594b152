"""``scripts/simulate``: random seeds, named scenarios and mutations over the production quorum."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from quorate.scripts.simulation.quorum.mutations import MUTATIONS
from quorate.scripts.simulation.quorum.patches import first_to_notice
from quorate.scripts.simulation.quorum.runner import SeedResult, run_seed
from quorate.scripts.simulation.quorum.scenarios.named import SCENARIOS
from quorate.scripts.simulation.seed_runs import CTRL_C, SeedOutcome, run_mutations, run_seeds

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
#: Seeds tried for a mutation that no scenario finds.
_MUTATION_SEEDS = 20
_SCENARIO_SEEDS = 5


def attempt(seed: int) -> SeedOutcome[SeedResult]:
    """Run one seed of the quorum; what became of it."""
    try:
        return SeedOutcome(seed, run_seed(seed), None)
    except Exception:  # noqa: BLE001  # whatever a seed dies of is its result
        return SeedOutcome(seed, None, traceback.format_exc())


def again(seed: int) -> str:
    """The command that runs this seed, and no other."""
    return f"scripts/simulate --seeds 1 --seed {seed}"


def _tell_failure(outcome: SeedOutcome[SeedResult]) -> None:
    print(f"{outcome.failure}\nseed {outcome.seed} failed; again with: {again(outcome.seed)}", flush=True)


def _scenario_failure(name: str, seed: int) -> str | None:
    try:
        SCENARIOS[name](seed)
    except Exception:  # noqa: BLE001  # whatever a scenario dies of is its result
        return traceback.format_exc()
    return None


@app.command()
def simulate(
    seeds: Annotated[int, typer.Option(min=0, help="Number of random seeds.")] = 100,
    seed: Annotated[int, typer.Option(help="The first seed; with --seeds 1 exactly this run again.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    scenarios: Annotated[bool, typer.Option(help="Run the named scenarios too.")] = False,
    scenario: Annotated[str | None, typer.Option(help="Run one named scenario with --seed, and nothing else.")] = None,
    mutations: Annotated[bool, typer.Option(help="Take out each safety measure: it must be noticed.")] = False,
    system: Annotated[
        bool, typer.Option("--system", help="The whole system: controllers, brokers, admin clients and their HTTP.")
    ] = False,
    stories: Annotated[Path, typer.Option(help="With --system: directory for the stories of seeds that fail.")] = Path(
        "var/simulation"
    ),
) -> None:
    """Run the quorum in virtual time against faults, and check every promise after every event.

    With --system the controllers above it, brokers and admin clients as well: scripts/simulate --system --seeds 200
    """
    if system:
        wanted = range(seed, seed + seeds)
        failed = _simulate_system(wanted, jobs, stories, scenario=scenario, scenarios=scenarios, mutations=mutations)
        sys.exit(1 if failed else 0)
    if scenario is not None:
        if scenario not in SCENARIOS:
            raise typer.BadParameter(f"{scenario} is none of: {', '.join(SCENARIOS)}")
        failed = _run_scenario(scenario, seed)
    elif mutations:
        failed = run_mutations(MUTATIONS, _find, jobs, _MUTATION_SEEDS)
    else:
        failed = sum(_run_scenario(name, n) for name in SCENARIOS for n in range(_SCENARIO_SEEDS)) if scenarios else 0
        failed += _run_seeds(range(seed, seed + seeds), jobs)
    sys.exit(1 if failed else 0)


def _simulate_system(
    seeds: range, jobs: int, stories: Path, *, scenario: str | None, scenarios: bool, mutations: bool
) -> int:
    # Loads the controllers, the brokers and their HTTP: the quorum's runs do without.
    from quorate.scripts.simulation.system import command
    from quorate.scripts.simulation.system.scenarios.named import SYSTEM_SCENARIOS

    if scenario is not None:
        if scenario not in SYSTEM_SCENARIOS:
            raise typer.BadParameter(f"{scenario} is none of: {', '.join(SYSTEM_SCENARIOS)}")
        return command.run_system_scenarios([scenario], seeds.start, stories)
    if mutations:
        return command.run_system_mutations(jobs)
    failed = command.run_system_scenarios(list(SYSTEM_SCENARIOS), seeds.start, stories) if scenarios else 0
    return failed + command.run_system_seeds(seeds, jobs, stories)


def _run_seeds(seeds: range, jobs: int) -> int:
    runs = run_seeds(attempt, seeds, jobs, _tell_failure)
    results = runs.results
    print(
        f"{runs.done} seeds, {runs.failed} failed, {runs.seconds:.0f} s: "
        f"{sum(r.events for r in results):,} events, {sum(r.acknowledged for r in results):,} writes acknowledged, "
        f"{sum(r.reads for r in results):,} linearizable reads, {sum(r.epochs for r in results):,} epochs, "
        f"{sum(r.checkpoints_loaded for r in results):,} checkpoints loaded"
    )
    if runs.is_broken_off:
        sys.exit(CTRL_C)
    return runs.failed


def _run_scenario(name: str, seed: int) -> int:
    failure = _scenario_failure(name, seed)
    if failure is not None:
        print(f"{failure}\nscenario {name} failed; again with: scripts/simulate --scenario {name} --seed {seed}")
        return 1
    print(f"scenario {name}, seed {seed}: holds")
    return 0


def _find(mutation: str) -> tuple[str, str | None]:
    """The scenario or seed that notices that a measure is missing, and its words; None if none does."""
    runs: list[tuple[str, Callable[[], object]]] = [
        (f"scenario {name}, seed {seed}", partial(SCENARIOS[name], seed))
        for name in SCENARIOS
        for seed in range(_SCENARIO_SEEDS)
    ]
    runs += [(f"seed {seed}", partial(run_seed, seed)) for seed in range(_MUTATION_SEEDS)]
    return mutation, first_to_notice(MUTATIONS[mutation], runs)
