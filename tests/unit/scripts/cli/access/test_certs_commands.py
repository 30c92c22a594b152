"""`quorate certs`: what is asked for badly is refused by name, and exit codes tell what `show` has found."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Ended, alone

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


async def certs(directory: Path, *arguments: str) -> Ended:
    return await alone("certs", *arguments, "--dir", str(directory))


async def test_ca_issues_renews_and_retires_and_show_finds_nothing_wrong(tmp_path: Path) -> None:
    at = tmp_path / "certificates"
    for arguments, says in (
        (("init", "--cluster-id", CLUSTER), f"CA of cluster {CLUSTER}: good until"),
        (
            ("issue", "controller", "1", "--hosts", "127.0.0.1,node.example"),
            f"controller-1 of cluster {CLUSTER}: good until",
        ),
        (("issue", "broker", "11-12,20", "--hosts", "127.0.0.1"), f"broker-11 of cluster {CLUSTER}"),
        (("issue", "client", "ana"), "which is for its owner alone\nTo controllers it is User:CN=ana, if"),
        (("renew", "ca"), "beside those before it"),
        (("renew", "--all"), "client-ana: good until"),
        (("retire",), "1 CA before the one that issues is trusted no more"),
    ):
        ended = await certs(at, *arguments)
        assert (ended.code, says in ended.out) == (exit_codes.DONE, True), ended
    shown = await alone("certs", "show", str(at), "--json")
    named = {tuple(one["uris"]): one["problems"] for one in json.loads(shown.out)}
    assert shown.code == exit_codes.DONE
    assert named == {
        (f"quorate://{CLUSTER}/ca",): [],
        (f"quorate://{CLUSTER}/controller/1",): [],
        tuple(f"quorate://{CLUSTER}/broker/{id_}" for id_ in (11, 12, 20)): [],
        (): [],
    }


async def test_show_of_what_ends_soon_says_so_and_fails(tmp_path: Path) -> None:
    await certs(tmp_path, "init", "--cluster-id", CLUSTER)
    await certs(tmp_path, "issue", "client", "ana", "--days", "10")
    ended = await alone("certs", "show", str(tmp_path))
    assert (ended.code, "client-ana.pem: it expires in 10.0 days" in ended.out) == (exit_codes.REFUSED, True)
    assert (await alone("certs", "show", str(tmp_path), "--within-days", "5")).code == exit_codes.DONE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("issue", "client", "ana", "--hosts", "a"), "a client serves nobody, and has no hosts"),
        (("issue", "controller", "1"), "by which names and addresses is controller 1 reached?"),
        (("issue", "controller", "1,2", "--hosts", "a"), "'1,2' is no id of a controller"),
        (("issue", "controller", "x", "--hosts", "a"), "'x' is no id of a controller"),
        (("issue", "broker", "x", "--hosts", "a"), "'x' is no broker id"),
        (("renew", "client-bob"), "'client-bob' has no certificate in"),
        (("renew",), "which ones? Name them, or say --all"),
        (("renew", "ca", "--all"), "which ones? Name them, or say --all"),
    ],
)
async def test_mistake_of_usage_is_named_and_writes_nothing(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    await certs(tmp_path, "init", "--cluster-id", CLUSTER)
    ended = await certs(tmp_path, *arguments)
    assert (ended.code, says in ended.said) == (exit_codes.USAGE, True), ended
    assert sorted(os.listdir(tmp_path)) == ["ca.key", "ca.pem"]


@pytest.mark.parametrize(
    ("cluster_id", "says"),
    [
        (CLUSTER[:-1], f"'{CLUSTER[:-1]}' is no uuid: it must have 22 characters"),
        (CLUSTER[:-1] + "!", f"'{CLUSTER[:-1]}!' is no uuid"),
        (CLUSTER[:-1] + "h", "its last character has bits that mean nothing"),
        ("", "'' is no uuid"),
    ],
)
async def test_id_that_is_no_clusters_makes_no_ca(tmp_path: Path, cluster_id: str, says: str) -> None:
    ended = await certs(tmp_path / "at", "init", "--cluster-id", cluster_id)
    assert (ended.code, says in ended.said, (tmp_path / "at").exists()) == (exit_codes.USAGE, True, False), ended


async def test_id_of_another_form_is_taken_where_somebody_says_that_it_is_one(tmp_path: Path) -> None:
    assert (await certs(tmp_path / "at", "init", "--any-id", "--cluster-id", "my-cluster")).code == exit_codes.DONE
    ended = await certs(tmp_path / "other", "init", "--any-id", "--cluster-id", "my/cluster")
    assert (ended.code, "'my/cluster' is no cluster id: 1 to 64 letters" in ended.said) == (exit_codes.REFUSED, True)


async def test_directory_without_a_ca_issues_nothing(tmp_path: Path) -> None:
    ended = await certs(tmp_path, "issue", "client", "ana")
    assert (ended.code, "ca.pem cannot be read: No such file" in ended.err) == (exit_codes.REFUSED, True)
    assert not os.listdir(tmp_path)
