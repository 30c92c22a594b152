"""Errors of the pipeline: one sentence each, with what to do about it."""

from __future__ import annotations

import json

from quorate.metadata_log.errors import QuorateError


class PipelineError(QuorateError):
    """A job of the pipeline cannot go on."""


class JavaNotFound(PipelineError):
    """No Java here runs Spark."""


class BadSetting(PipelineError):
    """An option of the session that cannot be used as it is."""


class SparkFailed(PipelineError):
    """Spark gave up for a reason of its own: no memory, no disk, no cluster, or a bug."""


class ClusterFailed(PipelineError):
    """A Spark cluster on this machine that cannot be started."""


class WorkerError(PipelineError):
    """One of our own errors, raised in a Python worker and carried to the driver with its own sentence.

    Attributes:
        kind: the name of its class, for its attributes did not survive the way.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def error_to_json(error: QuorateError) -> str:
    """One of our own errors for a row of a worker's results; read back by ``error_from_json``."""
    return json.dumps({"kind": type(error).__name__, "message": str(error)})


def error_from_json(text: str) -> WorkerError:
    """The error that ``error_to_json`` wrote."""
    return WorkerError(**json.loads(text))
