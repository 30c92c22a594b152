"""`quorate format`: what it writes, and what it refuses."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
import ssl
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quorate.broker.settings import BrokerSettings
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.directory.directory import MetadataDirectory
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.cli.access.certs import app as certs
from quorate.scripts.cli.clusters.format import app
from quorate.scripts.cluster.own_machines import MayHaveRun
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.lost_majority.directory_survey import survey_directory

OPERATIONS = Path(__file__).parents[5] / "docs" / "operations.md"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def made(path: Path, *options: str) -> Result:
    """The settings of one controller, where nothing listens."""
    quorum, http = free_ports(2)
    places = ("--to", str(path / "etc"), "--metadata", str(path / "data-{id}"))
    return run("settings", *places, "--controller", f"1@127.0.0.1:{quorum}:{http}", *options)


def directory(path: Path, *options: str) -> Result:
    return run("directory", "--config", str(path / "etc" / "controller-1.toml"), *options)


def test_settings_of_several_controllers_agree_and_can_be_loaded(tmp_path: Path) -> None:
    named = [word for n in (3, 1, 2) for word in ("--controller", f"{n}@[::{n}]:9093:8080")]
    written = json.loads(run("settings", "--to", str(tmp_path), *named, "--insecure", "--json").stdout)
    loaded = [load_settings(ControllerSettings, tmp_path / f"controller-{n}.toml", (), {}) for n in (1, 2, 3)]
    assert [one.node_id for one in loaded] == [1, 2, 3]
    assert {one.cluster_id for one in loaded} == {written["cluster_id"]}
    assert {one.voters for one in loaded} == {loaded[0].voters}
    assert len({voter.directory_id for voter in loaded[0].voters}) == 3
    assert [str(one.directory) for one in loaded] == [f"/var/lib/quorate/controller-{n}" for n in (1, 2, 3)]
    assert str(loaded[1].voter.http) == "[::2]:8080"
    assert read_secret(loaded[0].shared_secret_file or Path())
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_settings_take_the_table_that_the_page_about_operations_appends(tmp_path: Path) -> None:
    assert made(tmp_path).exit_code == 0
    file = tmp_path / "etc" / "controller-1.toml"
    (snippet,) = re.findall(
        r"```toml\n(\[access\]\nauthorizer.*?)```", OPERATIONS.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    file.write_text(file.read_text(encoding="utf-8") + snippet, encoding="utf-8")
    loaded = load_settings(ControllerSettings, file, (), {})
    assert (loaded.access.authorizer, loaded.access.super_users) == ("acl", ("User:admin",))
    file.write_text(file.read_text(encoding="utf-8").replace(snippet, 'http.bind = "127.0.0.1:1"\n'), encoding="utf-8")
    assert str(load_settings(ControllerSettings, file, (), {}).http_bind) == "127.0.0.1:1"


def test_settings_with_an_administrator_load_and_know_his_token_and_no_secret_lies_open(tmp_path: Path) -> None:
    named = [word for n in (1, 2, 3) for word in ("--controller", f"{n}@10.0.0.{n}:9093:8080")]
    written = run("settings", "--to", str(tmp_path), *named, "--admin", "root")
    assert written.exit_code == 0, written.output
    one = load_settings(ControllerSettings, tmp_path / "controller-1.toml", (), {})
    assert (one.access.authorizer, one.access.super_users, one.access.insecure) == ("acl", ("User:root",), False)
    assert one.tls.paths.cert_file == tmp_path / "controller-1.pem"
    token = (tmp_path / "admin.token").read_text().strip()
    found = TokensFile(one.access.tokens_file).find(token)
    assert found is not None
    assert found.principal == "User:root"
    assert token not in written.output
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    brokers = load_settings(BrokerSettings, tmp_path / "broker.toml", ("ids=11",), {})
    assert (brokers.shared_secret_file, brokers.tls.ca_files) == (tmp_path / "broker.token", (tmp_path / "ca.pem",))


def test_certificates_that_settings_name_are_made_by_the_commands_that_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = ("--controller", "1@10.0.0.1:9093:8080", "--controller", "2@10.0.0.2:9093:8080")
    told = run("settings", "--to", "etc", *named, "--admin", "root").stdout
    commands = [line.split()[2:] for line in told.splitlines() if line.startswith("  quorate certs ")]
    for command in commands:
        assert CliRunner().invoke(certs, command).exit_code == 0, command
    for node, host in ((1, "10.0.0.1"), (2, "10.0.0.2")):
        one = load_settings(ControllerSettings, tmp_path / "etc" / f"controller-{node}.toml", (), {})
        made_of = ssl.PEM_cert_to_DER_cert((tmp_path / "certificates" / f"controller-{node}.pem").read_text())
        paths = one.tls.paths
        for path in (paths.cert_file, paths.key_file, *paths.ca_files):
            assert path is not None
            assert (tmp_path / "certificates" / path.name).exists(), path
        assert f"quorate://{one.cluster_id}/controller/{node}".encode() in made_of
        assert ipaddress.ip_address(host).packed in made_of


def test_commands_that_are_told_are_those_of_a_directory_with_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a b'$(reboot)\n%i"
    told = made(path, "--admin", "root").stdout
    words = shlex.split(told[told.index("  quorate ") :])
    etc = path / "etc"
    files = {words[place + 1] for place, word in enumerate(words) if word in ("--config", "--file", ">")}
    assert files == {str(etc / name) for name in ("controller-1.toml", "broker.toml", "tokens", "broker.token")}
    assert load_settings(ControllerSettings, etc / "controller-1.toml", (), {}).directory == path / "data-1"


def test_settings_on_loopback_have_an_administrator_where_one_is_named_and_no_tls(tmp_path: Path) -> None:
    assert made(tmp_path, "--admin", "root").exit_code == 0
    one = load_settings(ControllerSettings, tmp_path / "etc" / "controller-1.toml", (), {})
    assert (one.access.authorizer, one.tls.is_on) == ("acl", False)


@pytest.mark.parametrize(
    ("options", "says"),
    [((), "say --admin NAME for TLS and permissions, or --insecure"), (("--admin", ""), "a principal is Type:name")],
)
def test_settings_over_machines_are_not_written_before_it_is_said_who_may_do_what(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    refused = run("settings", "--to", str(tmp_path / "etc"), "--controller", "1@10.0.0.1:9093:8080", *options)
    assert refused.exit_code == 2
    assert says in " ".join(refused.output.replace("│", " ").split())
    assert not (tmp_path / "etc").exists()


def test_settings_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    assert made(tmp_path).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "etc").iterdir()}
    (tmp_path / "etc" / "secret").unlink()
    refused = made(tmp_path)
    assert isinstance(refused.exception, QuorateError)
    assert "is there already" in str(refused.exception)
    left = {path: path.read_bytes() for path in (tmp_path / "etc").iterdir()}
    assert left == {path: data for path, data in before.items() if path.name != "secret"}


@pytest.mark.parametrize(
    ("controllers", "says"),
    [
        (["1@10.0.0.1:9093"], "is no controller"),
        (["1@10.0.0.1:9093:0"], "a port from 1 to 65535"),
        (["1@10.0.0.1:9093:9093"], "named twice"),
        (["1@10.0.0.1:1:2", "1@10.0.0.2:1:2"], "named twice"),
        (["1@0.0.0.0:9093:8080"], "and no machine"),
        (["1@[::]:9093:8080"], "and no machine"),
        (["4294967296@10.0.0.1:1:2"], "is no controller"),
        (["1@a/b:9093:8080"], "is no controller"),
        (["1@$(reboot):9093:8080"], "is no controller"),
        (["1@..:9093:8080"], "is no controller"),
        ([f"{n}@10.0.0.1:{n}:{n + 100}" for n in range(1, 17)], "15 at most"),
    ],
)
def test_controllers_that_are_none_are_refused_and_nothing_is_written(
    tmp_path: Path, controllers: list[str], says: str
) -> None:
    named = [word for one in controllers for word in ("--controller", one)]
    refused = run("settings", "--to", str(tmp_path / "etc"), *named)
    assert refused.exit_code == 2
    assert says in " ".join(refused.output.replace("│", " ").split())
    assert not (tmp_path / "etc").exists()


def test_empty_path_is_no_metadata_directory(tmp_path: Path) -> None:
    refused = made(tmp_path, "--metadata", "")
    assert (refused.exit_code, "an empty path" in refused.output, [*tmp_path.iterdir()]) == (2, True, [])


def test_one_directory_for_two_controllers_of_a_machine_is_refused(tmp_path: Path) -> None:
    named = ("--controller", "1@localhost:1:2", "--controller", "2@localhost:3:4")
    assert run("settings", "--to", str(tmp_path), "--metadata", "/srv/metadata", *named).exit_code == 2


def test_directory_is_made_only_for_a_cluster_of_which_somebody_says_that_it_never_ran(tmp_path: Path) -> None:
    made(tmp_path)
    refused = directory(tmp_path)
    assert isinstance(refused.exception, MayHaveRun)
    assert "quorate recover rejoin" in str(refused.exception)
    assert not (tmp_path / "data-1").exists()
    assert directory(tmp_path, "--founding").exit_code == 0
    held = survey_directory(tmp_path / "data-1")
    assert (held.node_id, held.end_offset, held.vote_epoch, held.voters) == (1, 0, 0, ())


def test_directory_that_is_formatted_is_named_and_not_touched(tmp_path: Path) -> None:
    cluster_id = json.loads(made(tmp_path, "--json").stdout)["cluster_id"]
    assert directory(tmp_path, "--founding").exit_code == 0
    before = survey_directory(tmp_path / "data-1")
    refused = directory(tmp_path, "--founding")
    said = str(refused.exception)
    assert "is formatted already" in said
    assert f"node 1 of cluster {cluster_id}" in said
    assert str(before.directory_id) in said
    assert survey_directory(tmp_path / "data-1") == before


def test_directory_of_settings_with_static_voters_has_them_in_its_election_state(tmp_path: Path) -> None:
    made(tmp_path)
    assert directory(tmp_path, "--founding", "--set", "quorum.kraft_version=0").exit_code == 0
    assert survey_directory(tmp_path / "data-1").voters == (1,)


def test_directory_of_another_cluster_than_the_settings_say_does_not_open(tmp_path: Path) -> None:
    made(tmp_path)
    directory(tmp_path, "--founding")
    with pytest.raises(QuorateError, match="belongs to cluster"):
        MetadataDirectory.open(RealDisk(), str(tmp_path / "data-1"), 1, "another")
    assert directory(tmp_path, "--founding", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ").exit_code == 2
