"""The environment of this process, in the place of which a command puts that of the cluster that it is about."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def own_environment() -> Iterator[None]:
    """A block whose environment is as before when it ends."""
    before = dict(os.environ)
    try:
        yield
    finally:
        replace_environment(before)


def replace_environment(environment: Mapping[str, str]) -> None:
    """Let the process have these variables and no others."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
