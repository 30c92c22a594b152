"""Protections are compared in turn, and each ratio is of two runs of one round."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.scripts.benchmarks.__main__ import _measured
from quorate.scripts.benchmarks.catalog import Benchmark
from quorate.scripts.benchmarks.comparison import ComparedFigure, compare
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.protection import NOTHING, Protection, Safeguard, base_of, name_of, variants
from quorate.scripts.benchmarks.workspace import Workspace

TLS = Protection({Safeguard.TLS})
ACLS = Protection({Safeguard.ACLS})
QUOTAS = Protection({Safeguard.QUOTAS})


@pytest.mark.parametrize(
    ("asked", "compared"),
    [
        (TLS, (NOTHING, TLS)),
        (TLS | ACLS, (NOTHING, ACLS, TLS, TLS | ACLS)),
        (QUOTAS, (NOTHING, QUOTAS)),
        (TLS | QUOTAS, (NOTHING, TLS, TLS | QUOTAS)),
        (TLS | ACLS | QUOTAS, (NOTHING, ACLS, TLS, TLS | ACLS, TLS | ACLS | QUOTAS)),
    ],
    ids=["TLS", "TLS and ACLs", "quotas", "TLS and quotas", "all"],
)
def test_every_combination_is_compared_and_quotas_on_top_of_all(
    asked: Protection, compared: tuple[Protection, ...]
) -> None:
    assert variants(asked) == compared


def test_what_each_is_compared_with_is_among_them() -> None:
    for one in variants(frozenset(Safeguard)):
        assert base_of(one) in variants(frozenset(Safeguard))
    assert base_of(TLS | ACLS | QUOTAS) == TLS | ACLS
    assert (name_of(NOTHING), name_of(ACLS | TLS)) == ("nothing", "TLS + ACLs")


def test_rounds_measure_each_once_and_begin_with_another_each_time() -> None:
    order: list[str] = []

    def measure(protection: Protection) -> BenchmarkOutcome:
        order.append(name_of(protection))
        took = len(order) * (2.0 if protection else 1.0)
        return BenchmarkOutcome("in one process", (Figure("time", "ms", (took,), (FigureTarget(1.0),)),))

    compared = compare(measure, (NOTHING, TLS), 3)

    assert order == ["nothing", "TLS", "TLS", "nothing", "nothing", "TLS"]
    plain, with_tls = compared.figures
    assert (plain.figure.samples, with_tls.figure.samples) == ((1.0, 4.0, 5.0), (4.0, 6.0, 12.0))
    assert (plain.ratios, with_tls.ratios) == ((), (4.0, 1.5, 2.4))
    assert with_tls.figure.targets == ()
    assert compared.method.startswith("in one process. Compared: nothing, TLS; 3 rounds, ")


def test_benchmark_runs_under_each_protection_that_has_a_price_for_it(tmp_path: Path) -> None:
    seen: list[tuple[Protection, int]] = []

    def run(workspace: Workspace) -> BenchmarkOutcome:
        seen.append((workspace.protection, workspace.runs))
        return BenchmarkOutcome("in one process", (Figure("time", "ms", (1.0,)),))

    priced = Benchmark("priced", "a thing", run, TLS)

    _measured(priced, Workspace(tmp_path, runs=2, scale=1.0), TLS | ACLS)
    _measured(priced, Workspace(tmp_path, runs=3, scale=1.0), NOTHING)

    assert seen == [(NOTHING, 1), (TLS, 1), (TLS, 1), (NOTHING, 1), (NOTHING, 3)]


def test_ratio_as_data_says_to_what() -> None:
    without, with_them = Figure("rate", "/s", (10.0, 20.0, 40.0)), Figure("rate", "/s", (5.0, 20.0, 10.0))

    data = ComparedFigure(TLS | QUOTAS, with_them, without).as_data()

    assert (data["with"], data["samples"]) == ("TLS + quotas", [5.0, 20.0, 10.0])
    assert data["ratio"] == {"to": "TLS", "median": 0.5, "min": 0.25, "max": 1.0}


def test_there_is_no_ratio_to_nothing_at_all() -> None:
    """Of a run that is too short to take any processor time."""
    idle = Figure("processor time", "µs", (0.0, 3.0))

    assert ComparedFigure(TLS, Figure("processor time", "µs", (1.0, 3.0)), idle).as_data()["ratio"] is None
