"""A Spark home with Spark's own scripts and jars, without its second copy of PySpark."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: PySpark as a zip file, which goes before the installed packages: in it no module is ever compiled for good.
_ZIPPED: Final = "python"


def make_spark_home(directory: Path) -> Path:
    """Make a stand-in for Spark's home in ``directory``, and return what SPARK_HOME has to be.

    Every Python process that Spark starts then takes PySpark from the installed packages, compiled, like the one that
    started Spark: a second less for each. For a Spark whose Python processes all run on this machine.
    """
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    home = directory / "spark"
    home.mkdir(parents=True, exist_ok=True)
    for entry in Path(found.submodule_search_locations[0]).iterdir():
        link = home / entry.name
        if entry.is_dir() and entry.name != _ZIPPED:
            link.unlink(missing_ok=True)  # of a stand-in made before, for another Spark
            link.symlink_to(entry)
    return home
