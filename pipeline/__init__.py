"""Questions to months of logs of many clusters, with Apache Spark.

`from quorate.pipeline import Logs` is for programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.pipeline.logs import Logs

__all__ = ["Logs"]


def __getattr__(name: str) -> Any:
    """Spark is imported when it is asked for: the commands' help, and a node's tools, do without."""
    if name == "Logs":
        from quorate.pipeline.logs import Logs

        return Logs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
