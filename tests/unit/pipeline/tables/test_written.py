"""What was written is looked for: files that are missing, cut short or of other rows are no result."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.pipeline.tables.written import NotShared, Written, require_directory, require_rows, write_part

ROWS = pa.table({"number": list(range(100))})


def write_all(directory: Path) -> dict[str, Written]:
    """Two files in one table, one of them a day's."""
    (directory / "versions" / "day=1970-01-01").mkdir(parents=True)
    first = write_part(ROWS, str(directory / "versions" / "part-0000.parquet"))
    second = write_part(ROWS, str(directory / "versions" / "day=1970-01-01" / "part-0001.parquet"))
    return {"versions": first + second}


def lose_one(directory: Path) -> None:
    (directory / "versions" / "day=1970-01-01" / "part-0001.parquet").unlink()


def lose_all(directory: Path) -> None:
    (directory / "versions" / "part-0000.parquet").unlink()
    lose_one(directory)


def cut_one(directory: Path) -> None:
    path = directory / "versions" / "part-0000.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def replace_one(directory: Path) -> None:
    write_part(ROWS.slice(0, 50), str(directory / "versions" / "part-0000.parquet"))


def add_one(directory: Path) -> None:
    write_part(ROWS, str(directory / "versions" / "part-0002.parquet"))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lose_one, "of the 2 files that workers wrote of versions 1 are here: the workers do not share"),
        (lose_all, "of the 2 files that workers wrote of versions 0 are here: the workers do not share"),
        (cut_one, "what workers wrote cannot be read back"),
        (
            replace_one,
            "of versions workers wrote 2 files of .* with 200 rows, and here are 2 files of .* with 150 rows",
        ),
        (add_one, "of versions workers wrote 2 files of .*, and here are 3 files"),
    ],
)
def test_results_that_are_not_as_they_were_written_get_no_name(
    tmp_path: Path, harm: Callable[[Path], None], sentence: str
) -> None:
    out = tmp_path / "out"

    with ResultDirectory(out) as directory:
        written = write_all(Path(directory.staging))
        harm(Path(directory.staging))
        with pytest.raises(NotShared, match=sentence) as raised:
            directory.commit({}, written)

    assert str(out) in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_results_that_are_as_they_were_written_get_their_name(tmp_path: Path) -> None:
    """What a worker had begun before it died does not count."""
    with ResultDirectory(tmp_path / "out") as directory:
        written = write_all(Path(directory.staging))
        (Path(directory.staging) / "versions" / ".part-0000.parquet.17").write_bytes(b"PAR1 and no more")
        directory.commit({}, written)

    assert (tmp_path / "out" / "manifest.json").exists()
    assert written["versions"].rows == 200
    require_rows(str(tmp_path / "out" / "versions"), 200)
    with pytest.raises(NotShared, match="of the 201 rows that workers wrote 200 are here"):
        require_rows(str(tmp_path / "out" / "versions"), 201)


def test_worker_refuses_a_directory_that_it_does_not_see(tmp_path: Path) -> None:
    require_directory(str(tmp_path))
    with pytest.raises(NotShared, match="/nothing: the driver has made this directory, and a worker does not see it"):
        require_directory(str(tmp_path / "nothing"))
