"""Production with a line replaced while a simulation runs, and whether the simulation notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from quorate.scripts.simulation.process_caches import forget_all
from quorate.scripts.simulation.quorum.checks import NotReached, Violation

#: (class or module, name of what is in it, what takes its place)
Patches = list[tuple[Any, str, Any]]


@contextmanager
def patched(patches: Patches) -> Iterator[None]:
    """Put the replacements in their places while the context is open; no cache knows of the other side's answers."""
    forget_all()
    try:
        with ExitStack() as stack:
            for place, attribute, replacement in patches:
                stack.enter_context(patch.object(place, attribute, replacement))
            yield
    finally:
        forget_all()


def notices_patches(patches: Patches, run: Callable[[], object]) -> str | None:
    """The promise that ``run`` finds broken once a measure is taken out; None when it finds none.

    Only a broken promise counts: not a situation that was not reached, and not a run that fails with the measure too.

    Raises:
        Violation: the promise is broken with the measure in place; that is a fault of the product, not of the mutation.
    """
    try:
        with patched(patches):
            run()
    except NotReached:
        return None
    except Violation as violation:
        run()
        return str(violation).partition("\n")[0]
    return None


def first_to_notice(patches: Callable[[], Patches], runs: Iterable[tuple[str, Callable[[], object]]]) -> str | None:
    """The first of some named runs that notices, and its words; None if none does. See ``notices_patches``."""
    for who, run in runs:
        said = notices_patches(patches(), run)
        if said is not None:
            return f"{who}: {said}"
    return None
