"""The controller against what Apache Kafka's own classes decided; docs/conformance.md says how they are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.scripts.conformance_runner.vector_file import RUNNERS, read_vectors
from quorate.scripts.conformance_runner.wanted_differences import WANTED, judged

DATA = Path(__file__).parents[1] / "data" / "conformance"


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("partition_change", 3_000),
        ("placement", 600),
        ("reassignment", 1_000),
        ("topic_names_configs", 876),
        ("full_controller", 20),
        ("authorizer", 2_000),
        ("principal_mapping", 600),
        ("scram", 500),
    ],
)
def test_controller_kafka_vectors_decides_the_same(kind: str, least: int) -> None:
    """Every difference is printed with the vector's id, for ``scripts/conformance --id``."""
    outcomes = []
    for found, vector in read_vectors(DATA / f"{kind}.jsonl.gz"):
        assert found == kind
        outcomes.append(judged(RUNNERS[kind](vector)))

    failed = [f"{outcome.vector_id}: {found}" for outcome in outcomes for found in outcome.differences]
    assert not failed, "\n".join(failed[:20])
    assert len(outcomes) >= least


def test_wanted_differences_are_of_vectors_of_the_set() -> None:
    """That each is seen there, the test above tells."""
    ids = {vector["id"] for path in DATA.glob("*.gz") for _, vector in read_vectors(path)} if WANTED else set()
    assert {row.vector_id for row in WANTED} <= ids
