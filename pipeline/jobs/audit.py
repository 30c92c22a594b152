"""``audit``: is the state that controllers say they have the one that the log adds up to?

The log is folded by Spark, and the digest of the state compared at every offset at which somebody else has said what it
is: manifests of checkpoints, checkpoints themselves, digests that were given, and where there is no manifest and none
was given a replay of another's making: the controllers' own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quorate.metadata_log.records.hidden_values import ALL_CONFIGS, IsSecret
from quorate.pipeline.errors import BadSetting, PipelineError, WorkerError
from quorate.pipeline.failures import translated
from quorate.pipeline.files.archives import FileLocation, Form, open_place, read_fully
from quorate.pipeline.files.inputs import InputCluster, InputFile, find_inputs
from quorate.pipeline.files.ranges import plan_checkpoint, task_from_json, task_to_json
from quorate.pipeline.files.replay_bases import ReplayBase, replay_base
from quorate.pipeline.files.walk import EVERYTHING
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.findings import COLUMNS, Problem, bucket_findings, catalogue_findings, findings_table
from quorate.pipeline.fold.reading import ReadCounts, fold_task, joined_counts
from quorate.pipeline.fold.state import FoldedState, state_at
from quorate.pipeline.fold.task import TaskFold
from quorate.pipeline.fold.timeline import Located
from quorate.pipeline.jobs.differences import first_difference, folded_state
from quorate.pipeline.jobs.folding import END, TASK_BYTES, FoldPlan, fold, plan_fold
from quorate.pipeline.jobs.other_states import OtherReplay, is_replayable, manifest_digest
from quorate.pipeline.spark.worker_use import WorkerUse
from quorate.snapshots.digest import digest_bytes, root

#: Read at a time to be hashed: what stays in a core's own cache until it is.
_READ_BYTES: Final = 256 * 1024
#: How `CorruptBatch` begins its sentence, behind the file.
_DAMAGE: Final = re.compile(r": damaged at byte \d+, offset (\d+): ")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The options of an audit.

    Attributes:
        at: offset up to which the log is read; None = its end. cluster_id: as ``inputs.find_inputs`` takes it.
        task_bytes: of log in one task. digests: that others computed, by offset. replay: whose digest counts where
            nobody else's does; None = nobody's. is_secret: which configs are hidden in what is told, as
            credentials are; by itself all.
    """

    at: int | None = None
    cluster_id: str | None = None
    task_bytes: int = TASK_BYTES
    digests: Mapping[int, str] = field(default_factory=dict)
    replay: OtherReplay | None = None
    is_secret: IsSecret = ALL_CONFIGS


@dataclass(frozen=True, slots=True)
class DigestComparison:
    """One digest held against the fold's."""

    #: Where the expected one is from: "manifest", "checkpoint", "given" or "replay".
    source: str
    #: The file, or the directory that was replayed; of a given one the directory audited.
    name: str
    offset: int
    expected: str
    found: str | None

    @property
    def holds(self) -> bool:
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The result of an audit. A certificate without its seal."""

    cluster_id: str
    base: ReplayBase
    counts: ReadCounts
    digest: str | None
    topics: int
    partitions: int
    comparisons: tuple[DigestComparison, ...]
    #: By offset: the first one is where things went wrong first.
    problems: tuple[Problem, ...]
    files: tuple[dict[str, Any], ...]
    #: Of the workers; of a run, and so not in the certificate.
    use: WorkerUse

    @property
    def passed(self) -> bool:
        return not self.problems and bool(self.comparisons) and all(one.holds for one in self.comparisons)

    def document(self) -> dict[str, Any]:
        """As JSON: every field always there."""
        counts = asdict(self.counts)
        base = self.base.checkpoint
        return {
            "certificate": "quorate audit",
            "version": 1,
            "verdict": "passed" if self.passed else "failed",
            "cluster_id": self.cluster_id,
            "base": {"checkpoint": base.name if base else None, "offset": self.base.first_offset},
            "log": counts,
            "state": {
                "offset": self.counts.end_offset,
                "digest": self.digest,
                "topics": self.topics,
                "partitions": self.partitions,
            },
            "comparisons": [{**asdict(one), "holds": one.holds} for one in self.comparisons],
            "problems": [asdict(problem) for problem in self.problems],
            "files": list(self.files),
        }


def audit(spark: SparkSession, paths: Sequence[str], options: AuditOptions) -> AuditResult:
    """Audit one cluster's log; one that is damaged fails the audit, as one that does not add up does.

    Raises:
        PipelineError, StorageError: it cannot be done: missing files, nothing to compare with.
    """
    (cluster,) = find_inputs(paths, cluster_id=options.cluster_id)
    return audit_cluster(spark, cluster, paths, options)


def audit_cluster(
    spark: SparkSession, cluster: InputCluster, paths: Sequence[str], options: AuditOptions
) -> AuditResult:
    """As ``audit``, of a cluster whose files are known; ``paths`` is where they come from."""
    base = audit_base(cluster, options.at)
    last = END if options.at is None else options.at
    audited = [file for file in cluster.checkpoints if base.first_offset < file.offset <= last]
    _require_audited(options.digests, base.first_offset, last, paths[0])
    moments = sorted({*(file.offset for file in audited), *options.digests, last})
    plan = plan_fold(cluster, base, moments, end=options.at, task_bytes=options.task_bytes)
    use = WorkerUse(spark)
    files = _hashed(spark, [*([base.checkpoint] if base.checkpoint else []), *audited, *cluster.segments], use)
    try:
        found = _folded(spark, plan, use)
    except PySparkException as error:
        return _damaged(cluster, base, _damage_in(error), files, use)
    counts = found.counts if found.counts.records else ReadCounts(end_offset=base.first_offset)
    if options.at is not None and counts.end_offset < options.at and not found.problems:
        name = cluster.segments[-1].name if cluster.segments else paths[0]
        raise PipelineError(f"{name}: the log ends at offset {counts.end_offset}, before {options.at}; ask for less")
    if not found.problems:
        _require_audited(options.digests, base.first_offset, counts.end_offset, paths[0])
    digests = {**found.digests, counts.end_offset: found.digests.get(last)}
    comparisons = [*_compared(spark, cluster, audited, digests), *_given(paths[0], options.digests, digests)]
    is_unsaid = not found.problems and not any(one.source in ("manifest", "given") for one in comparisons)
    if is_unsaid and options.replay is not None and is_replayable(paths):
        expected = options.replay(paths[0], counts.end_offset).digest
        comparisons.append(
            DigestComparison("replay", paths[0], counts.end_offset, expected, digests[counts.end_offset])
        )
    if not comparisons and not found.problems:
        remedy = "give a metadata directory, or the checkpoints with the segments"
        raise PipelineError(f"{paths[0]}: there is nothing to compare the state with: {remedy}")
    problems = [*found.problems, *_explained(spark, cluster, plan, comparisons, options)]
    return AuditResult(
        cluster.cluster_id,
        base,
        counts,
        digests[counts.end_offset],
        found.topics,
        found.partitions,
        tuple(comparisons),
        tuple(sorted(problems, key=lambda problem: problem.offset)),
        tuple(files),
        use,
    )


def _damage_in(error: PySparkException) -> Problem:
    """The damage that a worker found.

    Raises:
        PySparkException: it is something else, as it was given.
    """
    found = translated(error)
    place = _DAMAGE.search(str(found)) if isinstance(found, WorkerError) else None
    if place is None:
        raise error
    return Problem(int(place[1]), str(found))


def _damaged(
    cluster: InputCluster, base: ReplayBase, damage: Problem, files: Iterable[dict[str, Any]], use: WorkerUse
) -> AuditResult:
    """The result for a log of which nothing can be said but where it is damaged, and of which files that is said."""
    counts = ReadCounts(first_offset=base.first_offset, end_offset=base.first_offset)
    return AuditResult(cluster.cluster_id, base, counts, None, 0, 0, (), (damage,), tuple(files), use)


def _require_audited(digests: Mapping[int, str], base: int, end: int, path: str) -> None:
    for offset in digests:
        if not base < offset <= end:
            raise BadSetting(f"{path}: a digest was given for offset {offset}; the audit is of {base + 1} to {end}")


def audit_base(cluster: InputCluster, at: int | None) -> ReplayBase:
    """The oldest base there is, so that as much as possible is audited."""
    first = cluster.first_offset
    for file in cluster.checkpoints if first is not None else ():
        if file.offset >= (first or 0) and (at is None or file.offset <= at) and (first or file.offset == 0):
            return ReplayBase(file, file.offset)
    return ReplayBase(None, 0) if first == 0 else replay_base(cluster, at)


# --- the fold ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Folded:
    #: By moment.
    digests: dict[int, str]
    counts: ReadCounts
    #: At the last moment.
    topics: int
    partitions: int
    problems: list[Problem]


def _folded(spark: SparkSession, plan: FoldPlan, use: WorkerUse) -> _Folded:
    moments = plan.moments

    def of_bucket(elements: Elements, records: list[Located]) -> pa.Table:
        return findings_table(bucket_findings(elements, records, moments))

    def of_others(records: list[Located], counts: list[ReadCounts]) -> pa.Table:
        joined = joined_counts(sorted(counts, key=lambda part: part.first_offset))
        return findings_table(catalogue_findings(records, moments), json.dumps(asdict(joined)))

    rows = fold(spark, plan, of_bucket, of_others, COLUMNS, use).collect()
    counts = next((ReadCounts(**json.loads(row.counts)) for row in rows if row.counts), ReadCounts())
    problems = sorted(
        {Problem(**problem) for row in rows for problem in json.loads(row.problems)},
        key=lambda problem: (problem.offset, problem.problem),
    )
    refused = {row.moment for row in rows if json.loads(row.problems) and not row.partitions}
    digests = {
        moment: digest_bytes(root(int.from_bytes(row.leaves, "big") for row in rows if row.moment == moment)).hex()
        for moment in moments
        if not any(at <= moment for at in refused)
    }
    last = [row for row in rows if row.moment == moments[-1]]
    return _Folded(
        digests, counts, sum(row.topics for row in last), sum(row.partitions for row in last), list(problems)
    )


# --- comparing ---------------------------------------------------------------------------------------


def _compared(
    spark: SparkSession, cluster: InputCluster, audited: list[InputFile], digests: dict[int, str | None]
) -> Iterator[DigestComparison]:
    contents = _checkpoint_digests(spark, cluster, audited)
    for file in audited:
        found = digests.get(file.offset)
        expected = manifest_digest(file)
        if expected is not None:
            yield DigestComparison("manifest", file.name, file.offset, expected, found)
        yield DigestComparison("checkpoint", file.name, file.offset, contents[file.name], found)


def _given(path: str, given: Mapping[int, str], digests: Mapping[int, str | None]) -> Iterator[DigestComparison]:
    for offset, digest in sorted(given.items()):
        yield DigestComparison("given", path, offset, digest, digests.get(offset))


def _checkpoint_digests(spark: SparkSession, cluster: InputCluster, files: list[InputFile]) -> dict[str, str]:
    """The digests of the states in checkpoints, by file."""
    if not files:
        return {}
    rows = [(file.name, file.offset, [task_to_json(task) for task in plan_checkpoint(cluster, file)]) for file in files]

    def digest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                tasks = [fold_task(task_from_json(text), EVERYTHING, ())[0] for text in row["tasks"]]
                found = state_at(tasks, row["offset"]).digest().hex()
                yield pa.RecordBatch.from_pydict({"name": [row["name"]], "digest": [found]})

    plan = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, len(rows)), "name string, offset long, tasks array<string>"
    )
    return {row.name: row.digest for row in plan.mapInArrow(digest, "name string, digest string").collect()}


def _explained(
    spark: SparkSession,
    cluster: InputCluster,
    plan: FoldPlan,
    comparisons: list[DigestComparison],
    options: AuditOptions,
) -> Iterator[Problem]:
    """The first difference where a digest differs. Of a digest that was given there is no state to look into."""
    wrong = [one for one in comparisons if not one.holds and one.found is not None and one.source != "given"]
    if not wrong:
        return
    first = min(wrong, key=lambda one: (one.offset, one.source))
    ours = folded_state(spark, plan, first.offset)
    if first.source == "replay" and options.replay is not None:
        theirs = _replayed_state(options.replay, first.name, first.offset)
    else:
        file = next(file for file in cluster.checkpoints if file.name == first.name)
        tasks = [fold_task(task, EVERYTHING, ())[0] for task in plan_checkpoint(cluster, file)]
        theirs = state_at(tasks, first.offset)
    yield first_difference(ours, theirs, first.offset, f"{first.source} {first.name}", options.is_secret)


def _replayed_state(replay: OtherReplay, path: str, offset: int) -> FoldedState:
    reading = TaskFold(is_base=True)
    for number, record in enumerate(replay(path, offset).records):
        reading.add_record(number, record)
    return state_at([reading.finish()], offset)


# --- files -------------------------------------------------------------------------------------------


def _hashed(spark: SparkSession, files: list[InputFile], use: WorkerUse) -> Iterator[dict[str, Any]]:
    """Name, bytes and SHA-256 of every file, without what is around it in an archive."""
    rows = [
        (file.name, file.place.full_path, file.place.form.value, file.place.member, file.size)
        for file in dict.fromkeys(files)
    ]

    def hashed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            clock = use.clock()
            places = [FileLocation(row["path"], Form(row["form"]), row["member"]) for row in batch.to_pylist()]
            sizes = batch.column("size").to_pylist()
            found = [_sha256(place, size) for place, size in zip(places, sizes, strict=True)]
            clock.stop("hash")
            counts, hashes = pa.array([one[0] for one in found], pa.int64()), pa.array([one[1] for one in found])
            yield pa.RecordBatch.from_arrays([batch.column("name"), counts, hashes], ["name", "bytes", "sha256"])

    slices = min(len(rows), 2 * spark.sparkContext.defaultParallelism)
    plan = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, slices), "name string, path string, form string, member string, size long"
    )
    for row in plan.mapInArrow(hashed, "name string, bytes long, sha256 string").collect():
        yield row.asDict()


def _sha256(place: FileLocation, size: int) -> tuple[int, str]:
    """Bytes and hash. A live segment grows: what was there when the audit began counts."""
    state, count = hashlib.sha256(), 0
    with open_place(place) as stream:
        while data := read_fully(stream, min(_READ_BYTES, size - count) if place.form is Form.PLAIN else _READ_BYTES):
            state.update(data)
            count += len(data)
    return count, state.hexdigest()
