"""The stand-in for Spark's home: all of it but the second copy of PySpark."""

from pathlib import Path

from quorate.pipeline.spark.spark_home import make_spark_home


def test_home_has_scripts_and_jars_and_no_pyspark_of_its_own(tmp_path: Path) -> None:
    home = make_spark_home(tmp_path)

    assert (home / "bin" / "spark-submit").is_file()
    assert any((home / "jars").glob("spark-core_*.jar"))
    assert not (home / "python").exists()


def test_home_that_was_made_before_is_made_again(tmp_path: Path) -> None:
    """A directory of a cluster may be used again, with another Spark."""
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "jars").symlink_to(tmp_path / "gone")

    assert any((make_spark_home(tmp_path) / "jars").iterdir())
