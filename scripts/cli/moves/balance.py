"""`quorate cluster balance`: replicas and leaders are evened out over brokers and racks."""

from __future__ import annotations

from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.moves.plans import MovePlan
from quorate.scripts.cli.moves.running import MoveOptions, Purpose, end, move


def balance(options: MoveOptions) -> None:
    """Even out replicas and preferred leaders over brokers, with the fewest moves that the racks allow.

    Partitions come to stand in as many racks as they can, and what is on brokers that are not registered any more moves
    away. Brokers that are fenced, shut down or are cordoned get nothing and keep what they have. The plan is shown
    first. Counts are evened, not bytes: controllers know no sizes. Ctrl-C ends the watching, and the same command goes
    on. Exit code 0: it is even; 1: something is left.

    Example: quorate cluster balance --dry-run
    """

    async def plan(client: ControllerClient) -> MovePlan:
        from quorate.controller.planning.planner import plan as planned
        from quorate.scripts.cli.moves.layouts import MoveRules, read_layout
        from quorate.scripts.cli.moves.making import made_plan

        rules = MoveRules(excluded=options.excluded, include_fenced=options.include_fenced, drains_unknown=True)
        return made_plan(await read_layout(client, None, rules), planned)

    purpose = Purpose(
        plan,
        order="balance the cluster",
        done="Replicas and leaders are as even as racks allow.",
        command="quorate cluster balance",
    )
    end(move(purpose, options), purpose, options)
