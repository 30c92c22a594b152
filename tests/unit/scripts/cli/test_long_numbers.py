"""A number of thousands of digits, which Python does not read, is refused as any other that is too large."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cluster.plan import ClusterError


@pytest.mark.parametrize("digits", ["0" * 5_000, "9" * 5_000], ids=["zeros", "nines"])
@pytest.mark.parametrize(
    "words",
    [
        ["up", "--brokers", "{}"],
        ["features", "upgrade", "metadata.version={}"],
        ["history", "broker", "{}"],
        ["partitions", "describe", "orders-{}"],
        ["explain", "partition", "orders-{}"],
    ],
    ids=" ".join,
)
def test_number_that_python_does_not_read_is_refused(words: list[str], digits: str) -> None:
    said = [word.format(digits) for word in words]
    ended = CliRunner().invoke(make_app(said), said)
    assert isinstance(ended.exception, ClusterError) or ended.exit_code == 2, ended.exception
