"""The JVM's archive of loaded classes: with it a session starts in less than half the time.

It is made at the end of the first run (20 s, once) and lies beside the packages that it is made of.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from pipeline.java import find_java


@contextmanager
def class_archive() -> Iterator[tuple[str, ...]]:
    """Yield the options that use the archive, or, where there is none yet, make it. Never more than one is kept."""
    java = find_java()
    directory = Path(pyspark.__file__).parent.parent / "spark-class-archive"
    made_for = hashlib.sha256(f"{java.home} {java.version} {pyspark.__version__}".encode()).hexdigest()[:16]
    archive = directory / f"{made_for}.jsa"
    quiet = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    if archive.exists():
        yield (f"-XX:SharedArchiveFile={archive}", *quiet)
        return
    directory.mkdir(exist_ok=True)
    for other in directory.iterdir():
        other.unlink()
    # Under its name only when it is whole: the JVM that was to write it may be killed.
    unfinished = archive.with_suffix(".part")
    yield (f"-XX:ArchiveClassesAtExit={unfinished}", *quiet)
    if unfinished.exists():
        unfinished.rename(archive)
