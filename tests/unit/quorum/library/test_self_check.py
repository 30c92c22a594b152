"""Only the library that was studied is run."""

from __future__ import annotations

import pytest
from pysyncobj import SyncObj

from quorate.quorum.errors import UnsupportedLibrary
from quorate.quorum.library.self_check import METHOD_HASHES, check_library


def test_library_installed_is_the_one_that_was_studied() -> None:
    check_library()


def test_library_of_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedLibrary, match=r"0\.3\.18"):
        check_library(version="0.3.18")


@pytest.mark.parametrize("name", METHOD_HASHES)
def test_library_with_one_method_changed_is_refused(name: str) -> None:
    def changed(self: object) -> None:
        """Not the library's."""

    patched = type("Patched", (SyncObj,), {name: changed})
    with pytest.raises(UnsupportedLibrary, match=name):
        check_library(patched)


def test_library_with_a_method_in_anothers_place_is_refused() -> None:
    """The file is the one that was studied, and both methods come from it."""
    patched = type("Patched", (SyncObj,), {"_isLeader": SyncObj._getTerm})
    with pytest.raises(UnsupportedLibrary, match="_isLeader"):
        check_library(patched)


def test_library_from_another_file_is_compared_method_by_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.quorum.library.self_check.FILE_HASH", "another")
    check_library()
    monkeypatch.setitem(METHOD_HASHES, "_isLeader", "another")
    with pytest.raises(UnsupportedLibrary, match="_isLeader"):
        check_library()


def test_library_that_was_studied_is_known_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every start reads the source of every method."""

    def not_needed(method: object) -> str:
        raise AssertionError(method)

    monkeypatch.setattr("quorate.quorum.library.self_check.source_hash", not_needed)
    check_library()
