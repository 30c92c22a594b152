"""Errors on the way out of a session whose JVM has died, and of one whose JVM lives: the JVM is a stand-in."""

import subprocess
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from quorate.pipeline.errors import SparkFailed
from quorate.pipeline.spark.session import _translating


@pytest.fixture
def living() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        yield process


@pytest.mark.parametrize("error", [Py4JError("o1.x"), Py4JNetworkError("empty"), ConnectionRefusedError("refused")])
def test_error_after_the_java_process_has_died_says_that_it_died(
    living: subprocess.Popen[bytes], error: Exception
) -> None:
    """Which of them comes depends on the call that was waiting, and on those that clean up after it."""
    living.kill()

    with pytest.raises(SparkFailed) as caught, _translating(living):
        raise error

    assert str(caught.value) == (
        "Spark's Java process died (exit code -9): was it killed, or the machine out of memory?"
    )


def test_connection_of_the_jobs_own_that_fails_is_not_taken_for_sparks(living: subprocess.Popen[bytes]) -> None:
    with pytest.raises(ConnectionResetError), _translating(living):
        raise ConnectionResetError("by a server")
