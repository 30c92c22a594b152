"""Files of Spark settings that are for their owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.spark.private_settings import read_private_settings, write_cluster_settings


def test_each_cluster_has_a_secret_of_its_own_in_a_file_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    write_cluster_settings(file)
    first = read_private_settings(file)
    write_cluster_settings(file)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (first["spark.authenticate"], first["spark.network.crypto.enabled"]) == ("true", "true")
    assert len(first["spark.authenticate.secret"]) == 64
    assert read_private_settings(file)["spark.authenticate.secret"] != first["spark.authenticate.secret"]


def test_a_link_that_lies_there_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "of-somebody").write_text("kept")
    (tmp_path / "spark.conf").symlink_to(tmp_path / "of-somebody")

    write_cluster_settings(tmp_path / "spark.conf")

    assert (tmp_path / "of-somebody").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "spark.conf"
    write_cluster_settings(file)
    file.chmod(mode)

    with pytest.raises(BadSetting, match=f"has mode {mode:04o}: it must be for its owner alone"):
        read_private_settings(file)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"spark.authenticate.secret\n", "line 1: must be a name"),
        (b"# of a cluster\n\nhunter2 is here", "line 3: must be a name"),
        (b"spark.a \xff", "not UTF-8 at byte 8"),
        (b"#" * 70_000, "more than 65536 bytes"),
    ],
)
def test_what_is_no_file_of_settings_is_refused_without_its_content(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "spark.conf"
    file.touch(0o600)
    file.write_bytes(content)

    with pytest.raises(BadSetting, match=problem) as refused:
        read_private_settings(file)
    assert "hunter2" not in str(refused.value)
