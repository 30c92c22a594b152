"""Only the library that was studied is run."""

from __future__ import annotations

import pytest
from pysyncobj import SyncObj

from quorum.errors import UnsupportedLibrary
from quorum.self_check import METHOD_HASHES, check_library


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
