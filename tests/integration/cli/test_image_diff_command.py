"""`quorate image diff` against running controllers."""

from __future__ import annotations

import json

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone, terminal


async def test_states_of_a_running_controller_are_compared() -> None:
    """The same topic is made on two clusters: every id is another, and nothing else."""
    async with terminal({11: "a", 12: None}) as here, terminal({11: "a", 12: None}) as there:
        before = here.stage.quorum.committed
        for user in (here, there):
            await user.run("topics", "create", "orders", "--replica-assignment", "11:12,11:12")
        await there.run("topics", "delete", "orders", "--yes")
        await there.run("topics", "create", "orders", "--replica-assignment", "11:12,11:12")
        one, other = here.stage.urls[1], there.stage.urls[2]

        same = await alone("image", "diff", one, here.stage.urls[0])
        assert (same.code, same.out.splitlines()[-1]) == (exit_codes.DONE, "The states are the same.")

        grown = await alone("image", "diff", f"{one}@{before}", one, "--json")
        parts = json.loads(grown.out)["parts"]
        assert (grown.code, parts["topics"]["added"], parts["partitions"]["added"]) == (exit_codes.REFUSED, 1, 2)

        by_id = await alone("image", "diff", one, other)
        assert (by_id.code, "  ~ orders: id " in by_id.out) == (exit_codes.REFUSED, True)
        by_name = await alone("image", "diff", one, other, "--match-names")
        assert (by_name.code, by_name.out.splitlines()[2:]) == (exit_codes.DONE, ["The states are the same."])


async def test_controller_that_is_not_there_or_not_so_far_is_no_difference() -> None:
    async with terminal({}) as user:
        url = user.stage.urls[1]
        beyond = await alone("image", "diff", url, f"{url}@1000000")
        assert (beyond.code, "its committed log ends at offset" in beyond.err) == (exit_codes.USAGE, True)
    gone = await alone("image", "diff", url, url)
    assert (gone.code, "cannot be reached" in gone.err) == (exit_codes.UNREACHABLE, True)
