"""`quorate pipeline audit`: is the state that controllers have the one that their log adds up to?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.uris import local
from quorate.scripts.cli.pipeline_jobs.running import Html, Inputs, JobRun, Mixed, workers_line
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.secrets_shown import secrets_rule

if TYPE_CHECKING:
    from quorate.pipeline.certificate import SigningKey
    from quorate.pipeline.jobs.audit import AuditOptions, AuditResult

_PROBLEMS_SHOWN = 10

WrittenCertificate = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        parser=local,
        help="Write the certificate, as JSON with a seal; with --mixed a directory, for CLUSTER.json of each.",
    ),
]
SignKey = Annotated[
    Path | None,
    typer.Option(
        "--sign-key", metavar="FILE", parser=local, help="Sign it with this Ed25519 key (PEM, without a password)."
    ),
]
Digests = Annotated[
    Path | None,
    typer.Option(
        "--digests", metavar="FILE", parser=local, help="Compare with these too: what scripts/replay-digests printed."
    ),
]


At = Annotated[
    int | None, typer.Option("--at", metavar="OFFSET", min=1, help="Read the log up to there; default: its end.")
]
ClusterId = Annotated[str | None, typer.Option("--cluster-id", metavar="ID", help="Of files that do not tell it.")]
TaskBytes = Annotated[
    int, typer.Option("--task-bytes", metavar="N", min=65536, help="Bytes of log in one task: memory of a worker.")
]


def audit(
    run: JobRun,
    paths: Inputs,
    at: At = None,
    certificate: WrittenCertificate = None,
    sign_key: SignKey = None,
    digests: Digests = None,
    cluster_id: ClusterId = None,
    mixed: Mixed = False,
    task_bytes: TaskBytes = 64 * 1024 * 1024,
    html: Html = None,
) -> None:
    """Replay a log with Spark, and hold the state against what controllers say it is: a certificate.

    The digest of the state is compared with the manifests of all checkpoints, with the checkpoints themselves, and
    where there is no manifest (Kafka writes none) and no digest is given, with the controllers' own replay.
    Every batch is checked, every partition's leader, ISR and epochs too. Exit code 1: the audit failed; it says what is
    wrong first. With --mixed each cluster is audited on its own, and one that fails does not stop the others.

    Example: quorate pipeline audit var/controller-1 --certificate audit.json --sign-key audit.key
    """
    from quorate.pipeline.certificate import load_signing_key
    from quorate.pipeline.given_digests import read_digests
    from quorate.pipeline.jobs.audit import AuditOptions
    from quorate.scripts.cli.pipeline_jobs.controllers_replay import controllers_replay

    if mixed and (at is not None or digests is not None or html is not None):
        raise BadSetting("--at, --digests and --html are of one audit, and --mixed is for several: leave one out")
    key = load_signing_key(sign_key) if sign_key is not None else None
    given = read_digests(digests) if digests is not None else {}
    is_secret = secrets_rule(show_secrets=False)
    options = AuditOptions(at, cluster_id, task_bytes, given, controllers_replay, is_secret)
    if mixed:
        has_passed = _audit_all(run, paths, options, key, certificate)
    else:
        has_passed = _audit_one(run, paths, options, key, certificate, html)
    if not has_passed:
        raise typer.Exit(exit_codes.REFUSED)


def _audit_one(
    run: JobRun,
    paths: list[str],
    options: AuditOptions,
    key: SigningKey | None,
    certificate: Path | None,
    html: Path | None,
) -> bool:
    from quorate.pipeline.certificate import sealed
    from quorate.pipeline.jobs.audit import audit as run_audit
    from quorate.pipeline.jobs.audit_page import audit_page

    with run.session("audit", hands_on=True) as spark:
        result = run_audit(spark, paths, options)
    document = sealed(result.document(), key)
    if certificate is not None:
        _write_certificate(document, certificate)
    if html is not None:
        audit_page(result, document).write(html)
    run.show(_lines(result, document), document)
    return result.passed


def _audit_all(
    run: JobRun, paths: list[str], options: AuditOptions, key: SigningKey | None, directory: Path | None
) -> bool:
    """Audit each of several clusters, and write a certificate of each to the directory."""
    from quorate.pipeline.certificate import sealed
    from quorate.pipeline.jobs.fleet_audit import audit_all

    with run.session("audit", hands_on=True) as spark:
        fleet = audit_all(spark, paths, options)
    documents = [sealed(one.document(), key) for one in fleet.results]
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        for document in documents:
            _write_certificate(document, directory / f"{quote(document['cluster_id'], safe='')}.json")
    lines = [line for pair in zip(fleet.results, documents, strict=True) for line in _lines(*pair)]
    lines += [f"Not audited: {name}: {error}" for name, error in fleet.failed.items()]
    run.show(lines, {"certificates": documents, "failed": fleet.failed})
    return fleet.passed


def _write_certificate(document: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _lines(result: AuditResult, document: dict[str, Any]) -> list[str]:
    counts, digest = result.counts, result.digest or "none: a record was refused"
    read = f"{counts.records} records in {counts.batches} batches"
    span = f"offsets {counts.first_offset} to {counts.end_offset} without a gap"
    lines = [f"Audit of cluster {result.cluster_id}: {document['verdict']}."]
    if counts.records:
        lines += [
            f"Log: {read}, {span}, epochs {counts.first_epoch} to {counts.last_epoch}.",
            f"State at {counts.end_offset}: {result.partitions} partitions of {result.topics} topics, digest {digest}.",
        ]
    for one in result.comparisons:
        verdict = "the same" if one.holds else f"NOT THE SAME: {one.expected}, found {one.found}"
        lines.append(f"  {one.source} at {one.offset}, {one.name}: {verdict}")
    for problem in result.problems[:_PROBLEMS_SHOWN]:
        where = "" if problem.topic is None else f", partition {problem.topic}-{problem.partition}"
        lines.append(f"  offset {problem.offset}{where}: {problem.problem}")
    if len(result.problems) > _PROBLEMS_SHOWN:
        lines.append(f"  and {len(result.problems) - _PROBLEMS_SHOWN} more")
    seal = "signed" if "ed25519" in document["seal"] else "sealed with a digest, not signed"
    size = sum(file["bytes"] for file in result.files)
    lines.append(f"Files: {len(result.files)}, {size} bytes. Certificate: {seal}.")
    lines.append(workers_line(result.use.processor_seconds, result.use.mb_max))
    return lines


def verify_certificate(
    certificate: Annotated[Path, typer.Argument(metavar="FILE", parser=local, help="A certificate that audit wrote.")],
    public_key: Annotated[
        Path | None,
        typer.Option("--public-key", metavar="FILE", parser=local, help="It must be signed with this key's (PEM)."),
    ] = None,
) -> None:
    """Find out whether a certificate is as it was written, and by whom. Exit code 1: it is not to be believed.

    Example: quorate pipeline verify-certificate audit.json --public-key audit.pub
    """
    from quorate.pipeline.certificate import verify

    document = verify(certificate, public_key)
    seal = document["seal"]
    by = f"signed by the key {seal['public_key']}" if "ed25519" in seal else "not signed: sealed with a digest only"
    state = document["state"]
    typer.echo(f"The certificate is whole, {by}.")
    typer.echo(f"Cluster {document['cluster_id']}, offset {state['offset']}: {document['verdict']}.")
