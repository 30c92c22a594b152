"""Answers over an image that a program has: those of files and running controllers, and what no image tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.answers import answers_of, read_image
from quorate.client import ApiError, ErrorCode, InvalidArgument, QuorateError, WhatIfStep
from tests.integration.commands import alone
from tests.unit.controller.small_cluster import SmallCluster

M2 = Path(__file__).parents[4] / "tests" / "data" / "kafka" / "static" / "m2" / "log"


async def told_by_command(*arguments: str) -> dict[str, Any]:
    """Without what every command says of its answers."""
    told: dict[str, Any] = json.loads((await alone(*arguments, "--from", str(M2), "--json")).out)
    assert told.pop("schema_version") == 1
    assert told.pop("as_of")["time"] is None
    return told


async def test_program_is_told_of_an_image_what_a_command_tells_of_its_files() -> None:
    """But for what the log beside the image tells."""
    answers = answers_of(read_image(M2))
    told = await told_by_command("explain", "topic", "single.replica")
    for symptom in told["symptoms"]:
        for cause in symptom["causes"]:
            assert cause.pop("since_ms") is not None
    found = (await answers.explain(topic="single.replica")).model_dump(mode="json")
    assert {cause.pop("since_ms") for symptom in found["symptoms"] for cause in symptom["causes"]} == {None}
    assert found == told

    stop = await answers.can_stop_brokers([11], "crash", limit=2)
    assert stop.model_dump(mode="json") == await told_by_command("can-stop", "broker", "11", "--crash", "--limit", "2")

    after = (await answers.what_if([WhatIfStep(event="start", brokers=[13])])).after
    assert (after.partitions.offline, after.elections.last_known) == (2, 780)
    assert (after.cluster_id, after.quorum.is_past) == ("", True)


async def test_answers_of_one_image_go_on_being_about_it() -> None:
    cluster = SmallCluster(2)
    cluster.create("orders", [0, 1])
    answers = answers_of(cluster.image, cluster_id="mine")
    offset = cluster.image.provenance.end_offset
    cluster.heartbeat(1, want_fence=True)

    assert (await answers.can_stop_brokers([0])).may_stop
    told = await answers.what_if([WhatIfStep(event="stop", brokers=[0])])
    assert (told.state_offset, told.before.verdict, told.before.cluster_id) == (offset, "healthy", "mine")
    assert not (await answers_of(cluster.image).can_stop_brokers([0])).may_stop


async def test_question_that_no_image_answers_is_refused_as_an_old_state_refuses_it() -> None:
    answers = answers_of(SmallCluster(1).image)
    for asking in (answers.can_stop_controllers([1]), answers.explain(controller=1)):
        with pytest.raises(ApiError, match="no log or checkpoint says how the controllers were") as refused:
            await asking
        assert refused.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(ApiError, match="no broker 7 is registered"):
        await answers.can_stop_brokers([7])


@pytest.mark.parametrize(
    ("at", "said"), [("yesterday", "read_image: .*yesterday"), (-1, "-1"), (2.5, "at must be str or int or None")]
)
def test_moment_that_is_none_is_refused_by_name(at: object, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        read_image(M2, at)  # type: ignore[arg-type]


def test_image_at_a_moment_is_that_of_the_files_there(tmp_path: Path) -> None:
    whole = read_image(M2)
    assert read_image(str(M2), 500).provenance.end_offset <= 500 < whole.provenance.end_offset
    assert read_image(M2, "500").provenance == read_image(M2, 500).provenance
    with pytest.raises(QuorateError):
        read_image(tmp_path / "nothing")
    with pytest.raises(InvalidArgument, match="image must be MetadataImage, not str"):
        answers_of("image")  # type: ignore[arg-type]
