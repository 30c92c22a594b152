"""Files of Kafka's tools that are refused: the sentence names the file, the place, the rule and the value."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from quorate.scripts.cli.topics.json_files import ReassignmentFile, read_json


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"version":7,"partitions":[]}', "version: Input should be 1, not 7"),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,-5]}]}',
            "partitions.0.replicas.1: Input should be greater than or equal to 0, not -5",
        ),
        (
            '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[]}]}',
            "partitions.0.replicas: List should have at least 1 item after validation, not 0",
        ),
        ('{"version":1,"partitions":[{"topic":"a","replicas":[1]}]}', "partitions.0.partition: must be given"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}],"more":1}', "more: is not known"),
        ("[", "Invalid JSON: EOF while parsing a list at line 1 column 1"),
    ],
)
def test_file_that_is_refused_says_which_value_breaks_which_rule(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(typer.BadParameter) as refused:
        read_json(path, ReassignmentFile)
    assert refused.value.message == f"{path}: {says}"
