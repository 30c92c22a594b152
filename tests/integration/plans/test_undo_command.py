"""`quorate undo` against controllers behind real HTTP servers: after it the state is as it was before the request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.controller.logs.audit_log import AuditLog
from quorate.metadata_log.records.hidden_values import no_secrets
from quorate.scripts.cli.plans import undo
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.asking import ask
from quorate.snapshots.difference.image_difference import image_difference
from quorate.snapshots.image.image import MetadataImage
from tests.integration.commands import Ended, Terminal, alone, terminal

#: They count changes, so a way back and forth does not leave them as they were.
COUNTED = {"leader_epoch", "partition_epoch"}


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[Terminal]:
    """Topic orders has two partitions on 11, 12; the active controller writes down who asks."""
    async with terminal({11: "a", 12: "b", 13: "a", 14: "b"}) as typed:
        member = typed.stage.members[1]
        audit = AuditLog(tmp_path, lambda: member.controller.epoch)
        audit.start()
        member.node.audit._lines = audit
        member.controller.on_decided = audit.note
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        await typed.run("configs", "alter", "topic/orders", "--set", "retention.ms=5")
        await typed.run("labels", "set", "topic:orders", "acme/schema=7")
        yield typed
        audit.close()


def image(user: Terminal) -> MetadataImage:
    return user.stage.members[1].controller.stable


def differing(before: MetadataImage, after: MetadataImage) -> list[str]:
    """Parts, entries and fields that are not the same, without what counts changes."""
    return [
        f"{part.part} {entry.name} {entry.change} {field}"
        for part in image_difference(before, after, no_secrets, by_name=True)
        for entry in part.entries
        for field in entry.fields
        if field not in COUNTED
    ]


def two_states(user: Terminal, began: int) -> tuple[str, ...]:
    """What `image diff` is asked to compare: the state at an offset with the one now."""
    url = user.stage.urls[1]
    return f"{url}@{began}", url, "--ignore", "epochs", "--match-names"


async def has_same_state(user: Terminal, began: int) -> None:
    """As the command says; a topic that was deleted comes back under another id."""
    same = await alone("image", "diff", *two_states(user, began))
    assert (same.code, same.out.splitlines()[2:]) == (exit_codes.DONE, ["The states are the same."])


async def last_request(user: Terminal) -> str:
    """The id of the newest request that wrote something."""
    _, page, _ = await user.stage.ask(1, "GET", "/v1/audit")
    return str(page["lines"][-1]["request_id"])


async def done(user: Terminal, *command: str) -> Ended:
    ended = await user.run(*command)
    assert ended.code == exit_codes.DONE, ended
    return ended


CHANGES = {
    "create": ("topics", "create", "new", "--partitions", "3", "--config", "retention.ms=1"),
    "delete": ("topics", "delete", "orders", "--yes"),
    "alter": ("configs", "alter", "topic/orders", "--set", "retention.ms=9", "--set", "segment.ms=100"),
    "replace": ("configs", "replace", "topic/orders", "--set", "segment.ms=100"),
    "secret": ("configs", "alter", "broker/11", "--set", "ssl.key.password=hush"),
    "label": ("labels", "set", "topic:orders", "acme/schema=8", "acme/owner=me"),
    "unlabel": ("labels", "remove", "topic:orders", "acme/schema"),
    "quota": ("quotas", "set", "user/ana", "--quota", "request_percentage=10.5"),
    "acl": ("acls", "add", "topic/orders", "--operation", "read", "--principal", "User:ana"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_undo_of_the_last_change_leaves_the_state_as_it_was(user: Terminal, change: str) -> None:
    before, began = image(user), user.stage.quorum.committed
    await done(user, *CHANGES[change])
    assert differing(before, image(user))
    request_id = await last_request(user)
    undone = await done(user, "undo", "--last", "--yes")
    assert request_id in undone.err
    assert "hush" not in undone.err + undone.out
    await has_same_state(user, began)
    assert await last_request(user) in (f"undo:{request_id}:1", f"undo:{request_id}:2")


async def test_undo_of_a_move_leaves_the_state_as_it_was(user: Terminal, tmp_path: Path) -> None:
    began = user.stage.quorum.committed
    await done(user, "reassign", "apply", moves_file(tmp_path, 0, [13, 14]))
    await user.catch_up("orders-0")
    moved = await alone("image", "diff", *two_states(user, began))
    assert (moved.code, "  ~ orders-0: " in moved.out) == (exit_codes.REFUSED, True)
    undone = await done(user, "undo", "--last", "--yes")
    assert "Begun: move orders-0 from 13,14 to 11,12." in undone.out.splitlines(), undone
    await user.catch_up("orders-0")
    await has_same_state(user, began)


async def test_undo_said_twice_takes_back_two_and_an_undo_can_be_taken_back(user: Terminal) -> None:
    states = [image(user)]
    for value in ("1", "2"):
        await done(user, "configs", "alter", "topic/orders", "--set", f"retention.ms={value}")
        states.append(image(user))
    await done(user, "undo", "--last", "--yes")
    assert differing(states[1], image(user)) == []
    undone = await last_request(user)
    await done(user, "undo", "--last", "--yes")
    assert differing(states[0], image(user)) == []
    changed = await user.run("undo", undone, "--yes")
    assert (changed.code, differing(states[0], image(user))) == (exit_codes.REFUSED, [])
    assert "not as it left it: configs of topic/orders: retention.ms is 5 now" in changed.err
    await done(user, "configs", "alter", "topic/orders", "--set", "retention.ms=1")
    again = await done(user, "undo", undone, "--yes")
    assert again.out == "Done: topic/orders: set retention.ms=2 (was 1).\n"


async def test_undo_of_the_last_change_takes_a_whole_plan_back(user: Terminal, tmp_path: Path) -> None:
    before, files = image(user), [tmp_path / "plan.json", tmp_path / "other.json"]
    await done(user, "configs", "alter", "topic/orders", "--set", "retention.ms=9")
    states = [before, image(user)]
    await done(user, *CHANGES["alter"], "--plan", str(files[0]))
    await done(user, *CHANGES["label"], "--plan", str(files[1]))
    plan, other = (json.loads(file.read_text()) for file in files)
    plan["steps"] += other["steps"]
    files[0].write_text(json.dumps(plan))
    await done(user, "apply", str(files[0]), "--yes")
    run, _, number = (await last_request(user)).rpartition(":")
    assert (run[:5], number) == ("plan:", "2")
    undone = await done(user, "undo", "--last", "--yes")
    assert differing(states[1], image(user)) == [], undone
    assert (await last_request(user)).startswith(f"undo:{run}:")
    await done(user, "undo", "--last", "--yes")
    assert differing(states[0], image(user)) == []


async def test_no_digest_of_a_secret_is_shown(user: Terminal, tmp_path: Path) -> None:
    """It has no salt: whoever reads it may try what the secret is."""
    for secret in ("one", "two"):
        await done(user, "configs", "alter", "broker/11", "--set", f"ssl.key.password={secret}")
    request_id = await last_request(user)
    undone = await done(user, "undo", "--last", "--yes")
    assert "set ssl.key.password=(hidden) (was (hidden))" in undone.out
    plan = str(tmp_path / "plan.json")
    await done(user, "configs", "alter", "broker/11", "--set", "ssl.key.password=four", "--plan", plan)
    await done(user, "configs", "alter", "broker/11", "--set", "ssl.key.password=three")
    stale = await user.run("apply", plan, "--yes")
    assert "quorate: configs of broker/11: ssl.key.password is another secret now\n" in stale.err
    refused = await user.run("undo", request_id, "--yes")
    assert "quorate: not as it left it: configs of broker/11: ssl.key.password is another secret now\n" in refused.err
    assert "sha256" not in undone.said + stale.said + refused.said


async def test_undo_leaves_alone_what_others_have_changed_since(user: Terminal) -> None:
    await done(user, "configs", "alter", "topic/orders", "--set", "segment.ms=100", "--set", "retention.ms=9")
    request_id = await last_request(user)
    await done(user, "configs", "alter", "topic/orders", "--set", "retention.ms=11")
    before = image(user)
    refused = await user.run("undo", request_id, "--yes")
    assert (refused.code, differing(before, image(user))) == (exit_codes.REFUSED, [])
    assert refused.err.splitlines()[1:] == [
        "quorate: not as it left it: configs of topic/orders: retention.ms is 11 now",
        "quorate: nothing was done; --rest takes back what nobody has changed since",
    ]
    told = await user.run("undo", request_id, "--yes", "--json")
    failure = json.loads(told.err.splitlines()[-1])
    assert (failure["error"], failure["exit_code"]) == ("REFUSED", exit_codes.REFUSED)
    assert "retention.ms is 11 now; nothing was done" in failure["message"]
    await done(user, "undo", request_id, "--rest", "--yes")
    assert differing(before, image(user)) == ["configs topic/orders changed segment.ms"]


#: What is done, and the sentence about what of it does not come back.
LASTING = {
    "growth": (("topics", "add-partitions", "orders", "--partitions", "3"), "topic orders keeps its partitions"),
    "password": (("users", "remove", "bo", "--mechanism", "SCRAM-SHA-256", "--yes"), "only who knows the password"),
    "election": (
        ("elect", "--type", "preferred", "--topic", "orders", "--partition", "1"),
        "leaders of 1 partition:",
    ),
    "registration": (
        ("brokers", "unregister", "14", "--force", "--yes"),
        "the registration of broker 14: it registers",
    ),
}


@pytest.mark.parametrize("change", LASTING)
async def test_undo_of_what_does_not_come_back_says_so_and_changes_nothing(
    user: Terminal, tmp_path: Path, change: str
) -> None:
    command, says = LASTING[change]
    if change == "password":
        password = tmp_path / "password"
        password.touch(mode=0o600)
        password.write_text("hush hush")
        secret = ("--mechanism", "SCRAM-SHA-256", "--password-file", str(password))
        await done(user, "users", "set", "bo", *secret)
    if change == "election":
        await done(user, "reassign", "apply", moves_file(tmp_path, 1, [11, 12]))
    await done(user, *command)
    if change == "registration":
        del user.epochs[14]
    before = image(user)
    refused = await user.run("undo", "--last", "--yes")
    assert (refused.code, differing(before, image(user))) == (exit_codes.REFUSED, [])
    assert "Done" not in refused.out
    assert "quorate: does not come back: " in refused.err
    assert says in refused.err
    instead = "the change before it that can be: quorate undo "
    assert f"quorate: nothing of it can be taken back; {instead}" in refused.err
    # It is a change that the log knows, and that was not taken back either.
    named = await user.run("undo", refused.err.rpartition(instead)[2].strip(), "--plan", str(tmp_path / "back"))
    assert (named.code, "Nothing was changed." in named.out) == (exit_codes.DONE, True), named


def moves_file(directory: Path, number: int, replicas: list[int]) -> str:
    file = directory / "moves.json"
    partition = {"topic": "orders", "partition": number, "replicas": replicas}
    file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    return str(file)


async def test_undo_of_moves_names_brokers_that_it_would_wait_for(user: Terminal, tmp_path: Path) -> None:
    """The way back needs 12, which has gone; and while the move is open, nobody."""
    before = image(user)
    await done(user, "reassign", "apply", moves_file(tmp_path, 0, [11, 13]))
    request_id = await last_request(user)
    plan = tmp_path / "back.json"
    planned = await done(user, "undo", request_id, "--plan", str(plan))
    assert "  move orders-0 from 11,13,12 to 11,12\n" in planned.out
    del user.epochs[12]
    assert (await user.run("brokers", "unregister", "12", "--force", "--yes")).code == exit_codes.DONE
    stale = await user.run("apply", str(plan), "--yes")
    assert "quorate: broker 12: state is not registered, not active" in stale.err
    told = await user.run("undo", request_id)
    assert "1 move would wait for broker 12, which is not registered\n" in told.err
    assert (told.code, "to take it back, say --yes" in told.err) == (exit_codes.USAGE, True)
    assert "partitions orders-0 changed replicas" in differing(before, image(user))


async def test_undo_needs_a_request_that_the_log_knows(user: Terminal) -> None:
    unknown = await user.run("undo", "no-such-request")
    assert (unknown.code, unknown.err) == (
        exit_codes.REFUSED, "quorate: the log tells of no change by request 'no-such-request'\n",
    )  # fmt: skip
    for arguments in ((), ("some", "--last")):
        wrong = await user.run("undo", *arguments)
        assert (wrong.code, "its id, or --last" in wrong.said) == (exit_codes.USAGE, True)


async def test_undo_of_the_last_is_refused_where_a_silent_controller_may_have_decided_a_later_one(
    user: Terminal,
) -> None:
    """Somebody changed something, and the only one who knows who does not answer."""
    controller, known = user.stage.members[1].controller, await last_request(user)
    noted, controller.on_decided = controller.on_decided, lambda *_: None
    await done(user, "labels", "set", "topic:orders", "acme/schema=8")
    controller.on_decided = noted
    offset, state = controller.stable.provenance.end_offset - 1, image(user)

    await user.stage.members[3].stop_serving()
    refused = await user.run("undo", "--last", "--yes")
    assert (refused.code, refused.out, image(user)) == (exit_codes.REFUSED, "", state)
    assert f"controller 3 cannot be asked who made the one at offset {offset}" in refused.err
    named = await user.run("undo", known, "--yes")
    assert "not as it left it" in named.err


async def test_undo_of_the_last_goes_on_beside_a_silent_controller_that_decided_none_behind_it(user: Terminal) -> None:
    await user.stage.members[3].stop_serving()
    await done(user, "undo", "--last", "--yes")
    assert "acme/schema" not in (await done(user, "labels", "list", "topic:orders")).out


async def test_how_far_the_log_goes_is_what_a_majority_has_agreed_on(user: Terminal) -> None:
    said = await asyncio.to_thread(ask, user.stage.urls[1], None, undo._committed_end)

    assert said == user.stage.quorum.committed > 0
