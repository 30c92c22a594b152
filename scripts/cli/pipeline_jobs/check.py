"""`quorate pipeline check`: does Spark run here?"""

from __future__ import annotations

from quorate.scripts.cli.pipeline_jobs.running import JobRun


def check(run: JobRun) -> None:
    """Find out whether Spark runs here: start it, run a small job in Java and in Python, say what was found.

    Example: quorate pipeline check --master local[2]
    """
    from quorate.pipeline.jobs.check import check_spark

    with run.session("check", hands_on=True) as spark:
        found = check_spark(spark)
    run.show(
        [
            f"Spark {found.spark_version} runs at {found.master} with a heap of {found.driver_memory}.",
            f"Java {found.java_version}: {found.java_home}",
            f"Python {found.python_version} in the workers: {', '.join(found.worker_pythons)}",
        ],
        found.as_json(),
    )
