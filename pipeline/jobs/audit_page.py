"""The page of `audit --html`. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorate.pipeline.jobs.audit import AuditResult
from quorate.pipeline.pages import HtmlPage, bars

_FILES_DRAWN = 200


def audit_page(result: AuditResult, document: dict[str, Any]) -> HtmlPage:
    """Verdict, comparisons, problems and files of a sealed certificate."""
    counts = result.counts
    offsets = (
        f"offsets {counts.first_offset:,} to {counts.end_offset:,}, epochs {counts.first_epoch} to {counts.last_epoch}"
    )
    page = HtmlPage(f"Audit of cluster {result.cluster_id}: {document['verdict']}", offsets)
    page.facts(
        [
            ("Verdict", document["verdict"]),
            ("Records", counts.records),
            ("Batches", counts.batches),
            ("Topics", result.topics),
            ("Partitions", result.partitions),
            ("Comparisons", len(result.comparisons)),
            ("Not the same", sum(not one.holds for one in result.comparisons)),
            ("Problems", len(result.problems)),
        ]
    )
    page.text(f"Digest of the state at {counts.end_offset:,}: {result.digest or 'none: a record was refused'}.")
    seal = document["seal"]
    page.text(f"Signed by the key {seal['public_key']}." if "ed25519" in seal else "Sealed with a digest, not signed.")
    compared = [
        (
            one.source,
            one.offset,
            Path(one.name).name,
            "the same" if one.holds else "NOT THE SAME",
            one.expected,
            one.found,
        )
        for one in result.comparisons
    ]
    columns = ["said by", "at offset", "name", "found", "expected digest", "digest of the log"]
    page.table("Comparisons", columns, compared, text="What others say the state is, against what the log adds up to.")
    if result.problems:
        problems = [(one.offset, one.topic, one.partition, one.problem) for one in result.problems]
        page.table("Problems", ["offset", "topic", "partition", "problem"], problems)
    page.section("Files", "All that was read, whole.")
    shown = result.files[:_FILES_DRAWN]
    page.plot(
        "Size of each file",
        bars([Path(file["name"]).name for file in shown], {"bytes": [f["bytes"] for f in shown]}, unit="bytes"),
    )
    page.table("Hashes", ["file", "bytes", "SHA-256"], [(f["name"], f["bytes"], f["sha256"]) for f in result.files])
    return page
