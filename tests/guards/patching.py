"""Production code with a part replaced for a while, and nothing that either side remembers left to the other."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quorate.scripts.simulation.process_caches import forget_all


@contextmanager
def patching() -> Iterator[pytest.MonkeyPatch]:
    """A patch that is undone at the end. The process's caches are empty at its beginning and behind its end."""
    forget_all()
    try:
        with pytest.MonkeyPatch.context() as patch:
            yield patch
    finally:
        forget_all()
