"""Files under names that may be foreseen: what somebody has put there is neither followed nor written to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quorate.metadata_log.new_files import open_new


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_is_replaced_and_what_it_leads_to_is_kept(tmp_path: Path, link: object) -> None:
    victim, name = tmp_path / "victim", tmp_path / ".page.unfinished"
    victim.write_bytes(b"kept")
    assert callable(link)
    link(victim, name)

    with open_new(name) as file:
        file.write(b"new")

    assert (victim.read_bytes(), name.read_bytes(), name.is_symlink()) == (b"kept", b"new", False)
    assert stat.S_IMODE(name.stat().st_mode) == 0o600


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_that_comes_back_meanwhile_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: object
) -> None:
    """Somebody who waits for the name to go is faster."""
    victim, name = tmp_path / "victim", tmp_path / ".page.unfinished"
    victim.write_bytes(b"kept")
    unlink = Path.unlink
    assert callable(link)

    def lose(path: Path) -> None:
        unlink(path, missing_ok=True)
        link(victim, path)

    monkeypatch.setattr(Path, "unlink", lose)
    with pytest.raises(FileExistsError):
        open_new(name)
    assert victim.read_bytes() == b"kept"


def test_directory_under_the_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(OSError, match="directory"):
        open_new(tmp_path / "name")
