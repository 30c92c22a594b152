"""The formats that tables can be written in."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from typing import Final

from quorate.pipeline.errors import BadSetting, PipelineError
from quorate.pipeline.files.storage import is_remote

_PACKAGE: Final = "deltalake"


class DeltaMissing(PipelineError):
    """The package that writes Delta's log is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Delta tables need the package deltalake, which is not installed: pip install 'quorate[delta]' "
            "(in a checkout scripts/quorate brings it in)"
        )


class TableFormat(StrEnum):
    """The format of a table's directory."""

    PARQUET = "parquet"
    DELTA = "delta"

    def require_writer(self, out: str) -> None:
        """See to it that tables of this format can be written to a place.

        Raises:
            DeltaMissing, BadSetting: they cannot.
        """
        if self is TableFormat.DELTA:
            require_delta()
            if is_remote(out):
                raise BadSetting(
                    f"{out}: Delta tables are written to the local file system only; leave --table-format out"
                )


def require_delta() -> None:
    """See to it that Delta's log can be read and written.

    Raises:
        DeltaMissing: it cannot.
    """
    if find_spec(_PACKAGE) is None:
        raise DeltaMissing
