"""Benchmarks with and without protections: the clusters are what is said of them, and each is measured."""

import json
from pathlib import Path

import pytest

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.scripts.benchmarks.http_load import PlainConnection
from quorate.scripts.benchmarks.processes import Watch, running_cluster
from quorate.scripts.benchmarks.protection import Protection, Safeguard
from quorate.scripts.benchmarks.requests import heartbeats
from quorate.scripts.benchmarks.workspace import Workspace
from tests.integration.project.test_bench import bench

TLS = Protection({Safeguard.TLS})
ACLS = Protection({Safeguard.ACLS})


def workspace(directory: Path, protection: Protection) -> Workspace:
    return Workspace(directory, runs=1, scale=0.001, seconds=1, protection=protection)


@pytest.mark.parametrize(
    ("protection", "refusal"),
    [(TLS, "TLS is spoken on this port"), (ACLS, "AUTHORIZATION_FAILED"), (TLS | ACLS, "TLS is spoken on this port")],
    ids=["TLS", "ACLs", "TLS and ACLs"],
)
async def test_measured_cluster_is_closed_to_who_proves_nothing_and_open_to_who_does(
    tmp_path: Path, protection: Protection, refusal: str
) -> None:
    async with running_cluster(workspace(tmp_path, protection), 0) as cluster, Watch(cluster) as watch:
        url = watch.connections[await watch.active()].url
        proof = cluster.askers.client()
        topics = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)])

        stranger = await PlainConnection.open(url.replace("https://", "http://"))
        with pytest.raises(QuorateError, match=refusal):
            await stranger.send(stranger.request("/v1/topics", topics, 10_000, as_msgpack=False))
        client = await PlainConnection.open(url, proof.tls, proof.bearer)
        answer = await client.send(client.request("/v1/topics", topics, 10_000, as_msgpack=False))

        assert json.loads(answer.body)["topics"][0]["error_code"] == ErrorCode.NONE
        for connection in (stranger, client):
            connection.close()


def test_brokers_show_certificates_of_their_own(tmp_path: Path) -> None:
    outcome = heartbeats.run(workspace(tmp_path, TLS | ACLS))

    assert [len(figure.samples) for figure in outcome.figures] == [1] * 6
    assert list(tmp_path.iterdir()) == []


def test_bench_prints_each_figure_under_each_protection_with_its_ratio(tmp_path: Path) -> None:
    arguments = ("--tls", "--quotas", "--json", "--runs", "1", "--scale", "0.001", "--dir", str(tmp_path))

    done = bench("commit", "single-create", *arguments)

    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    found = {one["name"]: one for one in json.loads(done.stdout)["benchmarks"]}
    names = {name: list(dict.fromkeys(figure["with"] for figure in one["figures"])) for name, one in found.items()}
    assert names == {"commit": ["nothing", "TLS"], "single-create": ["nothing", "TLS", "TLS + quotas"]}
    alone = [one for one in found["single-create"]["figures"] if one["name"] == "topic created, one in flight"]
    assert [one["ratio"] and one["ratio"]["to"] for one in alone] == [None, "nothing", "TLS"]
    assert all(len(figure["samples"]) == 1 for one in found.values() for figure in one["figures"])


def test_bench_of_what_has_no_such_price_says_what_has() -> None:
    done = bench("restart", "--tls", "--acls")

    assert done.returncode == 2
    assert "'restart' does not go with --tls and --acls" in done.stderr.replace("│", "").replace("\n", "")
