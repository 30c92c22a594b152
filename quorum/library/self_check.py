"""Refuse to run on a PySyncObj whose internals are not the ones that were studied.

The package overrides and calls private methods of the library. What they do is part of the argument why agreement is
safe, so their source is compared, not only the version number. Where the whole file is the one that was studied, so is
every method that comes from it; only of another file the methods are compared one by one, which takes a while.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any, Final

from pysyncobj import SyncObj, syncobj
from pysyncobj.version import VERSION

from quorate.quorum.errors import UnsupportedLibrary

SUPPORTED_VERSION: Final = "0.3.17"

#: SHA-256 of the module that ``SyncObj`` is written in, with line ends as on Unix.
FILE_HASH: Final = "e8bdf06797085d734df86e24ab4802fe87893dff77268565ec036f7ad4a1cfe4"

#: First 16 hex digits of the SHA-256 of each method's source: those that are overridden, those that are called, and
#: those that run between them.
METHOD_HASHES: Final[dict[str, str]] = {
    "__init__": "09df12cd7fd7d727",
    "doTick": "bef78c2ba06d784b",
    "_onTick": "cc9eb08232d005ba",
    "_checkCommandsToApply": "a386a8079361d204",
    "_applyCommand": "827f207d515b2d64",
    "_isLeader": "56c32c31db26cdc0",
    "_getLeader": "90e3b8391a79e851",
    "_getTerm": "93bb30b770623bbd",
    "_SyncObj__onMessageReceived": "ddfe34b6c0282179",
    "_SyncObj__sendNextNodeIdx": "68aaeefc267b8896",
    "_SyncObj__generateRaftTimeout": "92ed37d3620e781a",
    "_SyncObj__onNodeConnected": "2655afb481b4c69b",
    "_SyncObj__onNodeDisconnected": "a81c0475ba2218cc",
    "_SyncObj__getCurrentLogIndex": "e5af22ca246686bd",
    "_SyncObj__getCurrentLogTerm": "1cb8867e6a13d397",
    "_SyncObj__getPrevLogIndexTerm": "6766914806ae2311",
    "_SyncObj__getEntries": "e29c4b33293b2101",
    "_SyncObj__deleteEntriesFrom": "3b23c411bb903d36",
    "_SyncObj__deleteEntriesTo": "b7b29988856a66b3",
    "_SyncObj__onBecomeLeader": "5a3fd97bc17dc1cf",
    "_SyncObj__setCurrentTerm": "0ad5bf456ac06bd3",
    "_SyncObj__setState": "2c1f239f7bd79b39",
    "_SyncObj__onLeaderChanged": "53b7685e1d897887",
    "_SyncObj__sendAppendEntries": "9cb9073128c392fa",
    "_SyncObj__connectedToAnyone": "acd40e9e3ac6c4cc",
    "_SyncObj__applyLogEntries": "073db677773b5a2d",
    "_SyncObj__doApplyCommand": "1ea7aa506e950d0a",
    "_SyncObj__tryLogCompaction": "c2f8a0ec14cc7312",
    "_SyncObj__callErrCallback": "6037c14ef64c2763",
}


def source_hash(method: Any) -> str:
    """The fingerprint of a method's source text."""
    return hashlib.sha256(inspect.getsource(method).encode("utf-8")).hexdigest()[:16]


def file_hash() -> str:
    """The fingerprint of the library's file; of no file at all where it has none."""
    try:
        data = Path(syncobj.__file__).read_bytes()
    except OSError:
        data = b""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def _is_own_method(method: Any, name: str) -> bool:
    """Whether it is the one that the library's file defines under this name, not something put in its place."""
    code = getattr(method, "__code__", None)
    # Private names are mangled where they are looked up, not where they are defined.
    defined_as = f"SyncObj.{name.removeprefix('_SyncObj')}"
    return code is not None and (code.co_filename, code.co_qualname) == (syncobj.__file__, defined_as)


def check_library(library: type[Any] = SyncObj, version: str = VERSION) -> None:
    """Compare the installed library with the one this package was written against.

    Raises:
        UnsupportedLibrary: names the version or the first method that differs.
    """
    if version != SUPPORTED_VERSION:
        raise UnsupportedLibrary(f"pysyncobj {version} is installed, {SUPPORTED_VERSION} is needed")
    is_file_known = file_hash() == FILE_HASH
    for name, expected in METHOD_HASHES.items():
        method = getattr(library, name, None)
        if method is None:
            raise UnsupportedLibrary(f"pysyncobj {version} has no {name}")
        if not (is_file_known and _is_own_method(method, name)) and source_hash(method) != expected:
            raise UnsupportedLibrary(f"pysyncobj {version}: the source of {name} is not the one that was studied")
