"""What tables can be written as."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from typing import Final

from pipeline.errors import PipelineError

_PACKAGE: Final = "deltalake"


class DeltaMissing(PipelineError):
    """The package that writes Delta's log is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Delta tables need the package deltalake, which is not installed: pip install 'quorate[delta]' "
            "(in a checkout scripts/quorate brings it in)"
        )


class TableFormat(StrEnum):
    """What the directory of a table is."""

    PARQUET = "parquet"
    DELTA = "delta"

    def require_writer(self) -> None:
        """See to it that tables of this format can be written here.

        Raises:
            DeltaMissing: they cannot.
        """
        if self is TableFormat.DELTA and find_spec(_PACKAGE) is None:
            raise DeltaMissing
