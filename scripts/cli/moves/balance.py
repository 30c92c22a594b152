"""`quorate cluster balance`: replicas and leaders are evened out over brokers and racks."""

from __future__ import annotations

from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.moves.plans import MovePlan
from quorate.scripts.cli.moves.running import (
    AtOnce,
    Exclude,
    IncludeFenced,
    MoveOptions,
    Purpose,
    end,
    excluded,
    move,
)
from quorate.scripts.cli.moves.waves import AT_ONCE_DEFAULT
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo, Yes
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile


def balance(
    at_once: AtOnce = AT_ONCE_DEFAULT,
    include_fenced: IncludeFenced = False,
    exclude: Exclude = None,
    dry_run: DryRun = False,
    plan_to: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Even out replicas and preferred leaders over brokers, with the fewest moves that the racks allow.

    Partitions come to stand in as many racks as they can, and what is on brokers that are not registered any more moves
    away. Brokers that are fenced, shut down or are cordoned get nothing and keep what they have. The plan is shown
    first. Counts are evened, not bytes: controllers know no sizes. Ctrl-C ends the watching, and the same command goes
    on. Exit code 0: it is even; 1: something is left.

    Example: quorate cluster balance --dry-run
    """
    options = MoveOptions(at_once, dry_run, yes, as_json, from_path, at, controllers, secret_file, plan_to)
    left_out = excluded(exclude)

    async def plan(client: ControllerClient) -> MovePlan:
        from quorate.controller.planning.planner import plan as planned
        from quorate.scripts.cli.moves.layouts import MoveRules, read_layout
        from quorate.scripts.cli.moves.making import made_plan

        rules = MoveRules(excluded=left_out, include_fenced=include_fenced, drains_unknown=True)
        return made_plan(await read_layout(client, None, rules), planned)

    purpose = Purpose(
        plan,
        order="balance the cluster",
        done="Replicas and leaders are as even as racks allow.",
        command="quorate cluster balance",
    )
    end(move(purpose, options), purpose, options)
