"""Spark's failures, each as one sentence: our own errors keep theirs, the usual troubles say what to do."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.pipeline.errors import PipelineError, SparkFailed, WorkerError

#: The end of a Python traceback, as a worker's is handed on in an exception's text: class and message.
_RAISED: Final = re.compile(r"^(?:\w+: )?([a-z_]\w*(?:\.\w+)*)\.(\w+): (.*)$", flags=re.MULTILINE)

#: What stands somewhere in the text, and what it means to the user.
_TROUBLES: Final = (
    ("java.lang.OutOfMemoryError", "Spark ran out of memory: give it more with --driver-memory, as 4g"),
    ("No space left on device", "the disk with Spark's temporary files is full: set TMPDIR to a roomier directory"),
    ("All masters are unresponsive", "the Spark master does not answer: is it running at the address of --master?"),
    ("Could not parse Master URL", "--master is none that Spark knows: give local[N], local[*] or spark://HOST:PORT"),
    ("Invalid master URL", "--master is none that Spark knows: give local[N], local[*] or spark://HOST:PORT"),
    ("Python worker exited unexpectedly", "a Python worker of Spark died: was it killed, or out of memory?"),
    ("ModuleNotFoundError", "a Python worker of Spark lacks a package: all nodes need the same, see docs/pipeline.md"),
    ("Cannot run program", "Spark could not start a Python worker: PYSPARK_PYTHON must name one on every node"),
)  # fmt: skip

_SENTENCE_MAX: Final = 300


def translated(error: BaseException) -> PipelineError:
    """Return the error of ours that says what an exception of Spark's or Py4J's says."""
    return translated_text(str(error))


def translated_text(text: str) -> PipelineError:
    """Return the error of ours for the text of an exception, with the tracebacks that are in it.

    A job that failed for the lack of a broken task's data tells several stories; the first of ours is the cause.
    """
    for module, kind, message in _RAISED.findall(text):
        if _is_ours(module, kind):
            return WorkerError(kind, message.strip())
    for mark, sentence in _TROUBLES:
        if mark in text:
            return SparkFailed(sentence)
    return SparkFailed(f"Spark failed ({_cause(text)}); --spark-log FILE keeps the whole story")


def sentence_of_log(log: Path) -> str:
    """Return what a JVM that did not start said last; its log may be empty, and huge."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    telling = [line for line in lines if re.match(r"(Error|Exception in|Caused by|java\.|Invalid)", line)]
    return _shortened((telling or [line for line in lines if line] or ["it said nothing"])[0])


def _is_ours(module: str, kind: str) -> bool:
    """Whether the name is that of an error class that we raise on purpose. Imports nothing that is not ours."""
    if not module.startswith(("quorate.metadata_log.", "quorate.pipeline.", "quorate.snapshots.")):
        return False
    try:
        found = getattr(import_module(module), kind, None)
    except ImportError:
        return False
    return isinstance(found, type) and issubclass(found, QuorateError)


def _cause(text: str) -> str:
    """The line that says most: the last one of a Python traceback, else the first of all."""
    raised = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception|Exit|Interrupt)\b.*", text, flags=re.MULTILINE)
    python = [line for line in raised if "Traceback" in text and not line.startswith(("org.", "java.", "py4j."))]
    lines = python or [line.strip() for line in text.splitlines() if line.strip()] or ["without a word"]
    return _shortened(lines[0])


def _shortened(line: str) -> str:
    return line if len(line) <= _SENTENCE_MAX else line[: _SENTENCE_MAX - 1] + "…"
