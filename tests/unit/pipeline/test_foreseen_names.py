"""What jobs write on the way to a result has a name that may be foreseen: a link that lies there is not followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from quorate.controller.planning.cluster import Brokers, ClusterLayout
from quorate.controller.planning.planner import plan
from quorate.pipeline.files.storage import write_file
from quorate.pipeline.pages.page import HtmlPage
from quorate.pipeline.planning.files import PlanNotWritten, write_plan
from quorate.pipeline.planning.tables import NamedCluster
from quorate.pipeline.tables.result_directory import ResultDirectory


def write_page(path: Path) -> None:
    HtmlPage("title", "subtitle").write(path)


def write_result(path: Path) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"result")

    write_file(str(path), write)


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    ("write", "foreseen"),
    [(write_page, ".result.unfinished"), (write_result, f".result.{os.getpid()}")],
    ids=["page", "file"],
)
def test_file_of_somebody_behind_a_link_is_kept(
    tmp_path: Path, write: Callable[[Path], None], foreseen: str, link: Callable[[Path, Path], None]
) -> None:
    theirs = tmp_path / "of-somebody"
    theirs.write_text("kept")
    link(theirs, tmp_path / foreseen)

    write(tmp_path / "result")

    assert theirs.read_text() == "kept"
    assert (tmp_path / "result").stat().st_size
    assert not (tmp_path / "result").is_symlink()


def make_tables(path: Path) -> None:
    with ResultDirectory(path):
        pass


def make_plan(path: Path) -> None:
    layout = ClusterLayout.of(Brokers.of({1: None, 2: None}), [[1]])
    none = np.zeros(1, np.int32)
    write_plan(NamedCluster(layout, np.array(["t"], object), none.astype(np.int64), none, 0), plan(layout), path)


@pytest.mark.parametrize(
    ("make", "foreseen", "refusal"),
    [(make_tables, "result.writing", FileExistsError), (make_plan, ".result.unfinished", PlanNotWritten)],
    ids=["tables", "plan"],
)
def test_directory_of_somebody_behind_a_link_is_kept_and_nothing_put_into_it(
    tmp_path: Path, make: Callable[[Path], None], foreseen: str, refusal: type[Exception]
) -> None:
    theirs = tmp_path / "of-somebody"
    theirs.mkdir()
    (theirs / "thesis").write_text("kept")
    (tmp_path / foreseen).symlink_to(theirs)

    with pytest.raises(refusal):
        make(tmp_path / "result")

    assert [(path.name, path.read_text()) for path in theirs.iterdir()] == [("thesis", "kept")]
    assert not (tmp_path / "result").exists()
