"""The forms of JSON that the jobs of `quorate pipeline` write: a document a job, about files, and so without a head.

Written out here, and not made of what the jobs return: that would bring Spark in. Tests run the jobs, and hold what
they write against these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel

from quorate.controller.planning.validator import PlanVerdict
from quorate.pipeline.comparing.report import Side
from quorate.scripts.cli.shell.own_forms import Incidents, OwnForm, Wrapping


class _Spent(BaseModel):
    #: By what the workers did.
    processor_seconds: dict[str, float]
    worker_mb_max: int


class _SparkFound(BaseModel):
    spark_version: str
    master: str
    driver_memory: str
    java_version: str
    java_home: str
    python_version: str
    worker_pythons: list[str]


class _Replayed(_Spent):
    cluster_id: str
    offset: int
    digest: str
    base: str | None
    base_offset: int
    records: int
    hides_secrets: bool
    #: By table.
    rows: dict[str, int]


class _LastBatch(BaseModel):
    base_offset: int
    epoch: int
    crc: int


class _Resume(BaseModel):
    offset: int
    batch: _LastBatch | None
    state: str


class _ClusterRead(BaseModel):
    cluster_id: str
    first_offset: int
    end_offset: int
    records: int
    resume: _Resume | None


class _WrittenTable(BaseModel):
    rows: int
    files: int
    size: int


class _History(_Spent):
    clusters: list[_ClusterRead]
    records: int
    tables: dict[str, _WrittenTable]
    seconds: float
    #: By cluster, or path: why there is nothing of it.
    failed: dict[str, str]
    hides_secrets: bool


class _AuditBase(BaseModel):
    checkpoint: str | None
    offset: int


class _AuditedLog(BaseModel):
    records: int
    batches: int
    first_offset: int
    end_offset: int
    first_epoch: int
    last_epoch: int
    first_time: int
    last_time: int


class _AuditedState(BaseModel):
    offset: int
    digest: str | None
    topics: int
    partitions: int


class _ComparedDigest(BaseModel):
    source: Literal["manifest", "checkpoint", "given", "replay"]
    name: str
    offset: int
    expected: str
    found: str | None
    holds: bool


class _AuditProblem(BaseModel):
    offset: int
    problem: str
    topic: str | None
    partition: int | None


class _AuditedFile(BaseModel):
    name: str
    bytes: int
    sha256: str


class _Digest(BaseModel):
    sha256: str


class _Signature(_Digest):
    ed25519: str
    public_key: str


class _Certificate(BaseModel):
    certificate: Literal["quorate audit"]
    #: Of certificates, which are kept and verified later.
    version: Literal[1]
    verdict: Literal["passed", "failed"]
    cluster_id: str
    base: _AuditBase
    log: _AuditedLog
    state: _AuditedState
    comparisons: list[_ComparedDigest]
    problems: list[_AuditProblem]
    files: list[_AuditedFile]
    seal: _Digest | _Signature


class _FleetAudit(BaseModel):
    """With `--mixed`."""

    certificates: list[_Certificate]
    failed: dict[str, str]


class _Difference(BaseModel):
    key: dict[str, str | int | None]
    change: Literal["only_a", "only_b", "changed"]
    #: None, as its values are, where the whole row is on one side only.
    field: str | None
    old: str | None
    new: str | None


class _DifferenceCounts(BaseModel):
    only_a: int
    only_b: int
    changed: int


class _ComparedKind(BaseModel):
    rows_a: int
    rows_b: int
    compared: list[str]
    counts: _DifferenceCounts
    by_field: dict[str, int]
    first: list[_Difference]


class _Comparison(BaseModel):
    a: Side
    b: Side
    matched_by: Literal["id", "name"]
    not_compared: list[str]
    equal: bool
    kinds: dict[str, _ComparedKind]


class _ReassignmentOutcome(BaseModel):
    cluster_id: str
    outcome: str
    count: int


class _UnderReplicated(BaseModel):
    cluster_id: str
    cause: str
    broker: int | None
    cause_offset: int | None
    ended_by: str
    partitions: int
    from_offset: int
    from_time: str
    to_offset: int | None
    to_time: str | None
    total_ms: int
    longest_ms: int
    first_partition: str


class _SparkIncidents(Incidents, _Spent):
    reassignment_outcomes: list[_ReassignmentOutcome]
    under_replicated: list[_UnderReplicated]
    seconds: float
    failed: dict[str, str]


class _BrokerFigures(BaseModel):
    broker: int
    rack: str | None
    role: Literal["takes", "keeps", "drained"]
    replicas_before: int
    replicas_after: int
    leaders_now: int
    preferred_before: int
    preferred_after: int
    bytes_before: float | None
    bytes_after: float | None


class _PlanSummary(BaseModel):
    partitions: int
    replicas: int
    in_motion: int
    brokers: list[_BrokerFigures]
    rack_rule_broken_before: int
    lost: int
    lost_moved: int
    verdict: PlanVerdict
    changed: int
    moves: int
    fewest_moves: int | None
    reordered: int
    bytes_moved: float | None


class _Trend(BaseModel):
    times: list[str]
    topics: list[int]
    partitions: list[int]
    replicas: list[int]
    leaderless: list[int]
    replicas_on: dict[str, list[int]]
    leaders_on: dict[str, list[int]]


class _RecordsByDay(BaseModel):
    days: list[str]
    counts: dict[str, list[int]]


class _Capacity(BaseModel):
    cluster_id: str
    plan: _PlanSummary
    trend: _Trend | None
    records: _RecordsByDay
    files: list[str]


class _Streamed(BaseModel):
    table: str
    records: int
    steps: int
    #: By cluster, exclusive.
    ends: dict[str, int]


class _DrillSeries(BaseModel):
    drill: str
    name: str
    meaning: str
    at_most: float
    runs: int
    passed: int
    median: float | None
    worst: float | None
    last: float | None
    change: float | None


class _DrillReport(BaseModel):
    measurements: list[_DrillSeries]


#: Command -> its form.
JOB_FORMS: Final[Mapping[str, OwnForm]] = {
    "pipeline audit": OwnForm(Wrapping.DOCUMENT, _Certificate | _FleetAudit),
    "pipeline capacity": OwnForm(Wrapping.DOCUMENT, _Capacity),
    "pipeline check": OwnForm(Wrapping.DOCUMENT, _SparkFound),
    "pipeline compare": OwnForm(Wrapping.DOCUMENT, _Comparison),
    "pipeline drill-report": OwnForm(Wrapping.DOCUMENT, _DrillReport),
    "pipeline history": OwnForm(Wrapping.DOCUMENT, _History),
    "pipeline incidents": OwnForm(Wrapping.DOCUMENT, _SparkIncidents),
    "pipeline replay": OwnForm(Wrapping.DOCUMENT, _Replayed),
    "pipeline stream": OwnForm(Wrapping.DOCUMENT, _Streamed),
}
