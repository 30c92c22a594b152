"""A cluster on machines of one's own: settings, directories, plain `quorate controller` and `quorate broker`."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.directory.meta_properties import decode_meta_properties
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.own_machines import NewController, write_settings
from tests.integration.commands import Ended, alone
from tests.integration.http_stage import stage
from tests.integration.own_machines import READY_S, OwnMachines, own_machines
from tests.waiting import eventually


def directory_id(cluster: OwnMachines, node: int) -> bytes:
    path = cluster.directory(node) / "meta.properties"
    return decode_meta_properties(path.read_bytes(), str(path)).directory_id


async def test_three_machines_are_formatted_and_one_that_loses_its_directory_joins_again(tmp_path: Path) -> None:
    async with own_machines(tmp_path) as cluster:
        for node in cluster.controllers:
            made = await cluster.format(node, "--founding")
            assert made.code == 0, made
            await cluster.start(node)
            if node == 1:
                # It runs alone, without a record: the cluster is still a new one, and somebody must say so.
                await eventually(lambda: _answers(cluster), "the first controller answers", READY_S)
                assert (await cluster.format(2)).code == 1
            if node == 2:
                break
        await eventually(lambda: cluster.status(), "two of three elect one", READY_S)
        late = await cluster.format(3, "--founding")
        assert late.code == 1
        assert "quorate recover rejoin" in late.err
        assert not cluster.directory(3).exists()
        joined = await alone("recover", "rejoin", "--config", str(cluster.settings(3)))
        assert joined.code == 0, joined
        await cluster.start(3)
        await cluster.all_vote()
        await cluster.start_broker(11)
        await eventually(lambda: _has_broker(cluster), "the broker is active", READY_S)
        await cluster.create_topic("kept")

        await loses_its_directory(cluster, 2)

        assert await cluster.client.describe_topic("kept", is_linearizable=True)


async def rejoin(home: Path, urls: dict[int, str], cluster_id: str, *options: str) -> tuple[Ended, int]:
    """Of controller 2, by settings that name those addresses; the generation of what was made."""
    named = [NewController(node, f"127.0.0.1:{node}", url.removeprefix("http://")) for node, url in urls.items()]
    files = write_settings(home, cluster_id, named, str(home / "data-{id}"))
    ended = await alone("recover", "rejoin", "--config", str(files["controller-2.toml"]), *options)
    path = home / "data-2" / "meta.properties"
    return ended, decode_meta_properties(path.read_bytes(), str(path)).generation


async def test_controller_joins_a_quorum_that_was_rebuilt_in_the_generation_that_the_others_tell(
    tmp_path: Path,
) -> None:
    async with stage(3) as s:
        cluster_id = s.members[1].node.cluster_id
        s.members[3].soft.generation = 1001
        urls = dict(enumerate(s.urls, start=1))
        assert (await rejoin(tmp_path / "one", urls, cluster_id))[1] == 1001
        assert (await rejoin(tmp_path / "two", urls, cluster_id, "--generation", "2001"))[1] == 2001
        for node in urls:
            await s.members[node].stop_serving()
        unheard, generation = await rejoin(tmp_path / "three", urls, cluster_id)
        assert (generation, "no other controller answers" in unheard.err) == (0, True)


async def loses_its_directory(cluster: OwnMachines, node: int) -> None:
    """It can only join again; as another directory, that no settings have to name."""
    before = directory_id(cluster, node)
    await cluster.kill(node)
    shutil.rmtree(cluster.directory(node))
    empty = await cluster.start(node)
    assert await empty.wait(READY_S) == 1
    assert "quorate recover rejoin" in empty.last_words()
    refused = await cluster.format(node, "--founding")
    assert refused.code == 1
    assert "records of cluster" in refused.err
    rejoined = await alone("recover", "rejoin", "--config", str(cluster.settings(node)))
    assert rejoined.code == 0, rejoined
    again = await alone("recover", "rejoin", "--config", str(cluster.settings(node)))
    assert again.code == 1
    assert f"is formatted already, for node {node} of cluster {cluster.cluster_id}" in again.err
    assert directory_id(cluster, node) != before
    await cluster.start(node)
    status = await cluster.all_vote()
    # The next leader writes down which directories there are now.
    await cluster.kill(status.quorum.active_id or 0)

    async def is_named() -> bool:
        seen = await cluster.status()
        return seen is not None and any(
            (voter.node_id, voter.directory_id) == (node, directory_id(cluster, node)) for voter in seen.quorum.voters
        )

    await eventually(is_named, f"the log names the new directory of controller {node}", READY_S)


async def test_address_that_takes_connections_and_says_nothing_is_no_sign_of_a_new_cluster(tmp_path: Path) -> None:
    async with own_machines(tmp_path) as cluster:
        host, _, port = cluster.controllers[2].rpartition(":")
        with socket.create_server((host, int(port))):
            refused = await cluster.format(1, "--founding")
    assert refused.code == 1
    assert "takes connections and does not say how its cluster is" in refused.err
    assert not cluster.directory(1).exists()


async def test_controller_of_another_cluster_at_one_of_the_addresses_is_named(tmp_path: Path) -> None:
    async with own_machines(tmp_path) as cluster:
        assert (await cluster.format(1, "--founding")).code == 0
        await cluster.start(1)
        await eventually(lambda: _answers(cluster), "the first controller answers", READY_S)
        settings, other = cluster.settings(2), new_id()
        settings.write_text(settings.read_text().replace(cluster.cluster_id, other))
        refused = await cluster.format(2, "--founding")
    assert refused.code == 1
    assert f"is a controller of cluster {cluster.cluster_id}, not of {other}" in refused.err


async def _answers(cluster: OwnMachines) -> bool:
    try:
        return bool(await cluster.client.status_of(f"http://{cluster.controllers[1]}", 1_000.0))
    except (ApiError, NotSent, NoAnswer):
        return False


async def _has_broker(cluster: OwnMachines) -> bool:
    status = await cluster.status()
    return status is not None and any((one.id, one.state) == (11, "active") for one in status.brokers)
