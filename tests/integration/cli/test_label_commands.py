"""`quorate labels` against controllers behind real HTTP servers."""

from __future__ import annotations

import json

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import answered, terminal


async def test_labels_are_set_compared_shown_and_removed() -> None:
    async with terminal({11: None}) as t:
        assert (await t.run("labels", "list")).out == "There are no labels.\n"
        await t.run("topics", "create", "orders", "--partitions", "2", "--replication-factor", "1")
        ended = await t.run("labels", "set", "topic:orders", "acme/schema=7", "acme/note=a b", "--dry-run")
        assert ended == (exit_codes.DONE, "Labels of topic:orders: 2 would be changed.\n", "")
        assert answered((await t.run("labels", "list", "--json")).out) == {"labels": []}
        ended = await t.run("labels", "set", "topic:orders", "acme/schema=7", "acme/note=a\nb")
        assert ended == (exit_codes.DONE, "Labels of topic:orders: 2 changed.\n", "")
        ended = await t.run("labels", "set", "topic:orders", "acme/schema=7")
        assert ended == (exit_codes.DONE, "Labels of topic:orders: they are so already.\n", "")
        await t.run("labels", "set", "partition:orders-1", "acme/keys=m..z", "--if-absent", "acme/keys")
        ended = await t.run("labels", "set", "topic:orders", "acme/schema=9", "--if", "acme/schema=8")
        assert ended.code == exit_codes.REFUSED
        assert "Label acme/schema of topic:orders is '7', and must be '8' for this change." in ended.said
        ended = await t.run("labels", "list", "--topic", "orders")
        assert ended.out == (
            "RESOURCE            KEY          VALUE\n"
            'partition:orders-1  acme/keys    "m..z"\n'
            'topic:orders        acme/note    "a\\nb"\n'
            'topic:orders        acme/schema  "7"\n'
        )
        ended = await t.run("labels", "list", "--limit", "1", "--json")
        assert [one["value"] for one in json.loads(ended.out)["labels"]] == ["m..z"]
        assert "more than these 1 labels" in ended.err
        assert (await t.run("labels", "list", "partition:orders-1", "--namespace", "other")).cells[0][0] == "There"
        ended = await t.run("labels", "remove", "topic:orders", "acme/schema", "acme/none", "--if", "acme/schema=7")
        assert ended.out == "Labels of topic:orders: 1 changed.\n"
        await t.run("topics", "delete", "orders", "--yes")
        assert (await t.run("labels", "list")).out == "There are no labels.\n"
        ended = await t.run("labels", "list", "--kind", "topic", "--at", str(t.stage.quorum.committed - 3))
        assert ended.cells[1:] == [["topic:orders", "acme/note", '"a\\nb"']]


async def test_what_is_no_label_is_refused_with_the_rule() -> None:
    async with terminal({}) as t:
        ended = await t.run("labels", "set", "cluster", "acme/schema")
        assert ended.code == exit_codes.USAGE
        assert "'acme/schema' is not KEY=VALUE" in ended.said
        ended = await t.run("labels", "set", "shard:1", "acme/x=1")
        assert ended.code == exit_codes.REFUSED
        assert "'shard:1' can have no labels: it is none of cluster, topic:NAME" in ended.said
        ended = await t.run("labels", "list", "--kind", "shard")
        assert ended.code == exit_codes.USAGE
