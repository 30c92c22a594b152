"""Texts of exceptions as Spark hands them on, and the one sentence each becomes."""

from pathlib import Path

import pytest

from quorate.pipeline.errors import SparkFailed, WorkerError
from quorate.pipeline.failures import sentence_of_log, translated_text

WORKER = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0
in stage 0.0 (TID 0) (127.0.0.1 executor driver): org.apache.spark.api.python.PythonException: Traceback (most recent
  File "pyspark/worker.py", line 3365, in main
    process()
  File "pipeline/files/walk.py", line 12, in read
    raise CorruptBatch(path, 17, 3, "CRC")
quorate.metadata_log.errors.CorruptBatch: a/0.log: damaged at byte 17, offset 3: CRC: found 1, computed 2

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:645)
"""

BUG = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "pipeline/files/walk.py", line 12, in read
    return 1 / 0
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner
"""


def test_error_of_ours_keeps_its_sentence_and_the_name_of_its_class() -> None:
    error = translated_text(WORKER)

    assert isinstance(error, WorkerError)
    assert (error.kind, str(error)) == (
        "CorruptBatch",
        "a/0.log: damaged at byte 17, offset 3: CRC: found 1, computed 2",
    )


@pytest.mark.parametrize(
    "prefix", ["pyspark.errors.", "quorate.metadata_log.errors.gone.", "os.path.", "quorate.pipeline.nothing."]
)
def test_name_that_is_not_an_error_of_ours_is_not_taken_for_one(prefix: str) -> None:
    error = translated_text(WORKER.replace("quorate.metadata_log.errors.", prefix))

    assert isinstance(error, SparkFailed)


def test_bug_in_a_worker_is_said_with_its_own_last_line() -> None:
    assert str(translated_text(BUG)) == (
        "Spark failed (ZeroDivisionError: division by zero); --spark-log FILE keeps the whole story"
    )


def test_exception_of_sparks_is_said_with_its_first_line() -> None:
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table `a` cannot be found.\nVerify it.\n\nJVM stacktrace:\n\tat org.apache"

    assert str(translated_text(text)) == (
        "Spark failed ([TABLE_OR_VIEW_NOT_FOUND] The table `a` cannot be found.); "
        "--spark-log FILE keeps the whole story"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Caused by: java.lang.OutOfMemoryError: Java heap space", "Spark ran out of memory: give it more with"),
        ("java.io.IOException: No space left on device", "the disk with Spark's temporary files is full"),
        ("Application has been killed. Reason: All masters are unresponsive! Giving up.", "the Spark master does not"),
        ("org.apache.spark.SparkException: Could not parse Master URL: 'nowhere'", "--master is none that Spark knows"),
    ],
)
def test_usual_trouble_says_what_to_do(text: str, sentence: str) -> None:
    error = translated_text(f"An error occurred while calling o1.x.\n: {text}\n\tat org.apache.spark.Main")

    assert isinstance(error, SparkFailed)
    assert str(error).startswith(sentence)


@pytest.mark.parametrize("text", ["", "\n\n", "x" * 5000])
def test_text_that_says_nothing_still_makes_one_short_sentence(text: str) -> None:
    sentence = str(translated_text(text))

    assert "\n" not in sentence
    assert len(sentence) < 400


def test_log_of_a_java_that_did_not_start_gives_its_error_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("WARNING: Using incubator modules\nError occurred during initialization of VM\nCould not reserve\n")

    assert sentence_of_log(log) == "Error occurred during initialization of VM"


def test_log_of_a_java_that_said_nothing_is_said_to(tmp_path: Path) -> None:
    (tmp_path / "log").touch()

    assert sentence_of_log(tmp_path / "log") == "it said nothing"
