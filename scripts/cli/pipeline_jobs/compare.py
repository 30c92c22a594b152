"""`quorate pipeline compare`: what differs between two clusters, or two moments of one."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.pipeline.files.storage import checked
from quorate.scripts.cli.pipeline_jobs.running import Html, JobRun
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.secrets_shown import secrets_rule

A = Annotated[
    str,
    typer.Argument(
        metavar="A",
        parser=checked,
        help="A log, a checkpoint, or tables that `history` or `replay` made; also s3:// URIs.",
        show_default=False,
    ),
]
B = Annotated[
    str | None,
    typer.Argument(metavar="B", parser=checked, help="Others; default: A, for two moments.", show_default=False),
]
AtA = Annotated[
    str | None, typer.Option("--at-a", metavar="MOMENT", help="A's state below this offset, or at this time.")
]
AtB = Annotated[str | None, typer.Option("--at-b", metavar="MOMENT", help="B's state then.")]
ClusterA = Annotated[
    str | None, typer.Option("--cluster-a", metavar="ID", help="A's cluster, where it holds several or does not tell.")
]
ClusterB = Annotated[
    str | None, typer.Option("--cluster-b", metavar="ID", help="B's cluster; default: that of A where B is A.")
]
MatchIds = Annotated[bool, typer.Option("--match-ids", help="Topics are matched by id, not by name.")]
ExpectEqual = Annotated[bool, typer.Option("--expect-equal", help="Exit with 1 if anything differs.")]
Limit = Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Tell so many differing rows of each kind.")]


def compare(
    run: JobRun,
    a: A,
    b: B = None,
    at_a: AtA = None,
    at_b: AtB = None,
    cluster_a: ClusterA = None,
    cluster_b: ClusterB = None,
    match_ids: MatchIds = False,
    expect_equal: ExpectEqual = False,
    limit: Limit = 20,
    html: Html = None,
) -> None:
    """Compare two clusters, or two moments of one: topics, partitions, brokers, configs, field by field.

    Quotas, ACLs, credentials, tokens, features and the quorum too, unless a side is tables of history, which do not
    hold them. Of credentials, and of configs that may be secrets, it is told that they differ, never what they are;
    where a side's tables hide them, they are not compared.

    Example: quorate pipeline compare var/controller-1 --at-a 10996 --at-b 2026-11-21T00:16:00Z
    """
    from quorate.pipeline.comparing.page import compare_page
    from quorate.pipeline.comparing.report import document, report
    from quorate.pipeline.jobs.compare import compare as compare_states
    from quorate.pipeline.jobs.compared_sides import RequestedSide, moment

    if b is None:
        b, cluster_b = a, cluster_b or cluster_a
    asked = (RequestedSide(a, moment(at_a), cluster_a), RequestedSide(b, moment(at_b), cluster_b))
    with run.session("compare", hands_on=True) as spark:
        found = compare_states(
            spark, *asked, match_ids=match_ids, limit=limit, is_secret=secrets_rule(show_secrets=False)
        )
    matched_by = "id" if match_ids else "name"
    if html is not None:
        compare_page(found.a, found.b, found.kinds, found.not_compared).write(html)
    told = (found.a, found.b, matched_by, found.kinds, found.not_compared)
    run.show(report(*told), document(*told))
    if expect_equal and not found.is_equal:
        raise typer.Exit(exit_codes.REFUSED)
