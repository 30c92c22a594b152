"""Apache Kafka's own dump tool: fetched once, run on files of ours, its output read back.

The jars come from the Maven repository that `mvn` is set up for, into a cache outside the checkout. Nothing of Kafka is
part of the product.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

KAFKA_VERSION = "4.3.1"
#: The binding for slf4j 1.7, which Kafka's tools need to log at all.
LOG4J_VERSION = "2.25.1"
FETCH_SECONDS_MAX = 600
DUMP_SECONDS_MAX = 240

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>quorate</groupId>
  <artifactId>kafka-dump-tool</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

_BATCH_LINE = re.compile(r"^baseOffset: ")
_RECORD_LINE = re.compile(
    r"^\| offset: (?P<offset>\d+) CreateTime: (?P<time>-?\d+) keySize: (?P<key>-?\d+) valueSize: (?P<value>-?\d+) "
    r"sequence: -1 headerKeys: \[\] (?:payload: (?P<payload>\{.*\})|(?P<control>\w+):? (?P<data>\{.*\}))$"
)


@dataclass(frozen=True)
class DumpedFile:
    """What Kafka's tool says of one file, in the form of `quorate log dump --json`."""

    #: One entry a batch, as in `batch` of a record; `isvalid` is Kafka's verdict on the CRC.
    batches: list[dict[str, Any]]
    records: list[dict[str, Any]]


def kafka_jars() -> Path:
    """The directory of Kafka's jars, fetched if need be; skips the test where that cannot be done."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: Kafka's dump tool cannot be run here")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jars = cache / "quorate" / f"kafka-{KAFKA_VERSION}"
    if not jars.is_dir():
        _fetch(jars)
    return jars


def _fetch(jars: Path) -> None:
    # Under another name until it is complete: a fetch that was cut off must not look like a cache.
    unfinished = jars.with_name(f"{jars.name}.part-{os.getpid()}")
    unfinished.mkdir(parents=True)
    try:
        (unfinished / "pom.xml").write_text(POM, encoding="utf-8")
        command = ["mvn", "-q", "-B", "-f", str(unfinished / "pom.xml"), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={unfinished}"],
            capture_output=True,
            check=False,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
        if done.returncode != 0:
            reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason given")
            pytest.skip(f"Kafka {KAFKA_VERSION} cannot be fetched: {reason[:200]}")
        if not jars.is_dir():
            unfinished.rename(jars)
    except subprocess.TimeoutExpired:
        pytest.skip(f"Kafka {KAFKA_VERSION} cannot be fetched within {FETCH_SECONDS_MAX} s")
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def dump_with_kafka(jars: Path, *files: Path) -> dict[Path, DumpedFile]:
    """Let `DumpLogSegments` read segments and checkpoints."""
    done = subprocess.run(
        [
            "java",
            "-Xmx512m",
            "-Dfile.encoding=UTF-8",
            "-cp",
            f"{jars}/*",
            "org.apache.kafka.tools.DumpLogSegments",
            "--cluster-metadata-decoder",
            "--files",
            ",".join(map(str, files)),
        ],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        timeout=DUMP_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    sections = done.stdout.split("Dumping ")[1:]
    dumped = {Path(section.partition("\n")[0]): _parsed(section) for section in sections}
    assert list(dumped) == list(files), done.stdout[:2_000] + done.stderr[-2_000:]
    return dumped


def _parsed(section: str) -> DumpedFile:
    batches: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for line in section.splitlines():
        if _BATCH_LINE.match(line):
            batches.append(_batch(line))
        elif line.startswith("| "):
            found = _RECORD_LINE.match(line)
            assert found is not None, f"Kafka's tool could not decode a record: {line[:500]}"
            records.append({**_record(found), "batch": batches[-1]["position"]})
    return DumpedFile(batches, records)


def _batch(line: str) -> dict[str, Any]:
    facts = dict(re.findall(r"(\w+): (\S+)", line))
    return {
        "base": int(facts["baseOffset"]),
        "last": int(facts["lastOffset"]),
        "count": int(facts["count"]),
        "epoch": int(facts["partitionLeaderEpoch"]),
        "control": facts["isControl"] == "true",
        "position": int(facts["position"]),
        "timestamp": int(facts["CreateTime"]),
        "size": int(facts["size"]),
        "crc": int(facts["crc"]),
        "isvalid": facts["isvalid"] == "true",
    }


def _record(found: re.Match[str]) -> dict[str, Any]:
    if found["payload"] is not None:
        body = json.loads(found["payload"])
        assert "data" in body, f"Kafka's tool could not decode a record: {found[0][:500]}"
    else:
        data = json.loads(found["data"])
        body = {"type": found["control"], "version": data.pop("version"), "data": data}
    return {
        "offset": int(found["offset"]),
        "timestamp": int(found["time"]),
        "key_size": int(found["key"]),
        "value_size": int(found["value"]),
        "type": body["type"],
        "version": body["version"],
        "data": body["data"],
    }
