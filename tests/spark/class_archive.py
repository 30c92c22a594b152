"""What makes a JVM start in less than half the time: an archive of its loaded classes, and the quick compiler alone.

The archive is made at the end of the first run (half a minute, once) and lies beside the packages that it is made of;
not where `QUORATE_TEST_CLASS_ARCHIVE` is `no`: on a build machine that is new every time there is no second run.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from pipeline.java import find_java

#: A test's data are small: what takes time is the JVM's own start, and compilation.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_file() -> Path:
    """Return where the archive for this Java and this Spark is, or is to be."""
    java = find_java()
    made_for = hashlib.sha256(f"{java.home} {java.version} {pyspark.__version__}".encode()).hexdigest()[:16]
    return Path(pyspark.__file__).parent.parent / "spark-class-archive" / f"{made_for}.jsa"


def quick_start() -> tuple[str, ...]:
    """Return the options of a JVM that is to start quickly, with the archive where there is one."""
    archive = archive_file()
    return (*_QUICK_START, f"-XX:SharedArchiveFile={archive}") if archive.exists() else _QUICK_START


@contextmanager
def quick_start_making_archive() -> Iterator[tuple[str, ...]]:
    """Yield the options of `quick_start`; a JVM that has ended by the end of the block made the archive if need be."""
    archive = archive_file()
    if archive.exists() or os.environ.get("QUORATE_TEST_CLASS_ARCHIVE") == "no":
        yield quick_start()
        return
    archive.parent.mkdir(exist_ok=True)
    for other in archive.parent.iterdir():
        other.unlink()
    # Under its name only when it is whole: the JVM that was to write it may be killed.
    unfinished = archive.with_suffix(".part")
    yield (*_QUICK_START, f"-XX:ArchiveClassesAtExit={unfinished}")
    if unfinished.exists():
        unfinished.rename(archive)
