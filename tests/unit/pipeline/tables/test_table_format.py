"""What tables can be written as here."""

from pathlib import Path

import pytest

from quorate.pipeline.tables import table_format
from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.pipeline.tables.table_format import DeltaMissing, TableFormat


def test_delta_without_its_package_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_format, "find_spec", lambda _: None)

    with pytest.raises(DeltaMissing, match=r"not installed: pip install 'quorate\[delta\]'"):
        ResultDirectory(tmp_path / "out", TableFormat.DELTA)

    TableFormat.PARQUET.require_writer("out")
    assert not list(tmp_path.iterdir())
