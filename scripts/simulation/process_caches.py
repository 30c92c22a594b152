"""The caches of this process, and how they are emptied: what patched code answered must reach nobody else.

Forgotten are the functions of ``functools.cache`` and ``functools.lru_cache`` at the top level of Quorate's modules,
and the memos listed here, which are kept by hand.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any, Final

#: Dictionaries, and objects that remember what they were asked last: where they stand, by module.
MEMOS: Final = {
    "quorate.controller.partitions.broker_columns": ("_NEWEST",),
    "quorate.controller.topics.broker_choices": ("_NEWEST",),
    "quorate.controller.topics.name_collisions": ("_LOOKS",),
    "quorate.metadata_log.records.codec": ("_READERS", "_WRITERS"),
}
#: The blank columns are no answers to remember: pages share them, and know them by identity for as long as they live.
SHARED: Final = frozenset(
    f"quorate.snapshots.table.pages.{name}" for name in ("blank_column", "_blank_list", "_blank_numbers")
)

#: What was found, by module: a module is looked through once.
_found: dict[str, list[Any]] = {}


def forget_all() -> None:
    """Empty every cache of the modules that are loaded."""
    for name, module in list(sys.modules.items()):
        if name.startswith("quorate.") and name not in _found:
            _found[name] = _caches_of(name, module)
        for cache in _found.get(name, ()):
            _forget(cache)


def _caches_of(name: str, module: ModuleType) -> list[Any]:
    memos = MEMOS.get(name, ())
    return [value for key, value in vars(module).items() if key in memos or _is_cache(value)]


def _is_cache(value: Any) -> bool:
    if not isinstance(value, functools._lru_cache_wrapper):
        return False
    return f"{value.__module__}.{value.__qualname__}" not in SHARED


def _forget(cache: Any) -> None:
    if isinstance(cache, functools._lru_cache_wrapper):
        cache.cache_clear()
    elif isinstance(cache, dict):
        cache.clear()
    else:
        vars(cache).update(vars(type(cache)()))  # as if it had just been made
