"""One Spark session with the settings that all jobs share, from its start to the end of its JVM.

Started by `spark-submit` a job finds a JVM that is there already: master and memory are that command's then.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from quorate.pipeline.errors import SparkFailed
from quorate.pipeline.failures import sentence_of_log, translated
from quorate.pipeline.source.registering import SETTINGS, add_source
from quorate.pipeline.spark.interrupts import interruptible
from quorate.pipeline.spark.java import find_java, home_for_spark
from quorate.pipeline.spark.memory import driver_memory, machine_bytes
from quorate.pipeline.spark.private_settings import AUTHENTICATED, read_private_settings
from quorate.pipeline.spark.scratch import scratch_directory
from quorate.pipeline.spark.shipping import write_packages
from quorate.pipeline.spark.spark_home import make_spark_home

__all__ = ["SessionSettings", "SparkSession", "spark_session"]

#: A JVM that was told to end is killed after this time.
_END_S_MAX: Final = 60

#: What is between the last word of a JVM and its end.
_DEATH_S_MAX: Final = 2

_LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings that a session is started with.

    Attributes:
        name: what Spark calls the job. master: `local[N]`, `local[*]`, `spark://HOST:PORT` and what else Spark knows.
        driver_memory: heap of the driver's JVM, as `2g`; None = bounded by the machine (`pipeline.spark.memory`).
        log: the file that gets Spark's own log; None = nobody reads it.
        java_options: further options of the driver's JVM. conf: further settings of Spark; they win over ours.
        private_conf: a file with settings that nobody else may read, such as a cluster's secret; they win over all.
    """

    name: str
    master: str = "local[*]"
    driver_memory: str | None = None
    log: Path | None = None
    java_options: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    private_conf: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether all of it runs in one JVM of this machine."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def is_on_loopback(self) -> bool:
        """Whether nobody on another machine takes part."""
        return self.is_local or bool(re.match(r"(spark://(127\.|localhost:)|local-cluster\[)", self.master))


@contextmanager
def spark_session(settings: SessionSettings) -> Iterator[SparkSession]:
    """Start Spark, and end it with all that it started: processes, threads, temporary files.

    Inside, an exception of Spark's becomes one of `PipelineError`. Ctrl-C ends the JVM, and with it the job, at once.

    Raises:
        JavaNotFound, BadSetting: before anything was started.
        SparkFailed, WorkerError: Spark did not start, or a job failed.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        with _translating(None):
            spark = SparkSession.builder.config(map=SETTINGS).getOrCreate()
            try:
                yield _configured(spark, is_local=True)
            finally:
                spark.stop()
        return
    memory = driver_memory(settings.driver_memory, machine_bytes())
    java = find_java()
    private = {} if settings.private_conf is None else read_private_settings(settings.private_conf)
    with scratch_directory() as scratch:
        variables = {
            "JAVA_HOME": str(home_for_spark(java, scratch)),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        }
        if settings.is_local and "SPARK_HOME" not in os.environ:
            variables["SPARK_HOME"] = str(make_spark_home(scratch))
        log = settings.log or scratch / "spark.log"
        conf = _conf(settings, memory, scratch)
        with log.open("wb") as log_file, _unlogged(), _jvm(conf, private, variables, log_file):
            yield _configured(SparkSession.builder.getOrCreate(), is_local=settings.is_local, scratch=scratch)


def _conf(settings: SessionSettings, memory: str, scratch: Path) -> dict[str, str]:
    java_options = (f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}", "-Duser.timezone=UTC")
    conf = {
        **SETTINGS,
        "spark.app.name": f"quorate {settings.name}",
        "spark.master": settings.master,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join((*java_options, *settings.java_options)),
        # Workers start in the caller's directory: nothing in it takes the place of a package.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    if "SPARK_LOCAL_DIRS" not in os.environ:
        conf["spark.local.dir"] = str(scratch)
    if settings.is_on_loopback:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if settings.is_local:
        conf |= {
            **AUTHENTICATED,
            # Nearly all tasks hand blobs on: hundreds of small ones would cost more than what is in them.
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
            "spark.python.daemon.module": "quorate.pipeline.jobs.worker_daemon",
        }
    return {**conf, **settings.conf}


def _configured(spark: SparkSession, *, is_local: bool, scratch: Path | None = None) -> SparkSession:
    if not is_local and scratch is not None:
        # Elsewhere nobody has our packages.
        spark.sparkContext.addPyFile(str(write_packages(scratch / "quorate.zip")))
    add_source(spark)
    return spark


@contextmanager
def _jvm(conf: dict[str, str], private: dict[str, str], variables: dict[str, str], log: IO[bytes]) -> Iterator[None]:
    """Start the JVM and Spark in it; end both. ``private``: settings that are no arguments of the JVM's."""
    spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    with interruptible() as interrupts, _environment(variables):
        gateway = _launched(spark_conf, log)
        try:
            interrupts.end_with(lambda: _kill(gateway.proc))
            with _translating(gateway.proc):
                # Launched with the others: these are told to the JVM itself.
                SparkContext(gateway=gateway, conf=spark_conf.setAll(list(private.items())))
                # Spark has taken the signal for itself.
                interrupts.take()
                yield
        finally:
            interrupts.no_longer()
            _end(gateway)


def _end(gateway: Any) -> None:
    """Stop Spark and its JVM, and make PySpark forget them, so that another session can be started."""
    process: subprocess.Popen[bytes] = gateway.proc
    if process.poll() is None:
        active = SparkContext._active_spark_context
        with suppress(Py4JError, PySparkException, OSError):
            if active is not None:
                active.stop()
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set these variables of the process: Spark takes no other way."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def _translating(jvm: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """Let an error of Spark's be one of ours, in one sentence. While the JVM is there: it knows the text."""
    try:
        yield
    except Py4JJavaError as error:
        raise translated(error) from error
    except (Py4JError, ConnectionError) as error:
        # No answer, or half of one, or none to ask any more: the JVM is gone or about to be, or it is a bug.
        with suppress(subprocess.TimeoutExpired):
            if jvm is not None:
                code = jvm.wait(_DEATH_S_MAX)
                raise SparkFailed(
                    f"Spark's Java process died (exit code {code}): was it killed, or the machine out of memory?"
                ) from error
        if isinstance(error, ConnectionError):
            raise
        raise translated(error) from error
    except PySparkException as error:
        raise translated(error) from error


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep Py4J from printing tracebacks where the program has set up no log: what is wrong is said by an error."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _launched(conf: SparkConf, log: IO[bytes]) -> Any:
    try:
        return launch_gateway(conf, {"stdout": log, "stderr": log})
    except PySparkException as error:
        raise SparkFailed(f"Spark's Java did not start: {sentence_of_log(Path(log.name))}") from error
