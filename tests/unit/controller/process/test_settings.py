"""Settings: where they come from, what is refused, and that the reference says what the program does."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from quorate.controller.configs.description import configs_of_new_topic
from quorate.controller.configs.topic_configs import UNCLEAN_CONFIG
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.view import allows_unclean_election
from quorate.controller.process.settings import Address, ControllerSettings, parse_address
from quorate.controller.process.settings_parts import controller_parts
from quorate.controller.process.settings_source import (
    environment_name,
    load_settings,
    setting_names,
)
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.generate_configuration_docs import PATH, make_text
from quorate.snapshots.image.image import EMPTY_IMAGE

FILE = """
node_id = 1
directory = "state"
[[voters]]
id = 1
quorum = "127.0.0.1:19001"
http = "127.0.0.1:18001"
directory_id = "AAAAAAAAAAAAAAAAAAAAZQ"
[[voters]]
id = 2
quorum = "127.0.0.1:19002"
http = "127.0.0.1:18002"
directory_id = "AAAAAAAAAAAAAAAAAAAAZg"
[quorum]
election_timeout_min_ms = 700
"""


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    """A file with two voters, of which this process is the first."""
    path = tmp_path / "controller.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def load(
    file: Path | None, overrides: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> ControllerSettings:
    return load_settings(ControllerSettings, file, overrides, environment or {})


def test_settings_default_file_environment_and_command_line_the_later_wins(settings_file: Path) -> None:
    name = environment_name(ControllerSettings, "quorum.election_timeout_min_ms")
    assert load(settings_file).quorum.election_timeout_min_ms == 700
    assert load(settings_file).quorum.election_timeout_max_ms == 1000
    from_environment = load(settings_file, environment={name: "600"})
    assert from_environment.quorum.election_timeout_min_ms == 600
    from_command = load(settings_file, ("quorum.election_timeout_min_ms=550",), {name: "600"})
    assert from_command.quorum.election_timeout_min_ms == 550


def test_settings_of_topics_are_kafkas_static_configs_and_decide_where_the_log_says_nothing(
    settings_file: Path,
) -> None:
    def config(*overrides: str) -> ControllerConfig:
        return controller_parts(load(settings_file, overrides), "cluster", None, None).config

    assert config().static_configs == {}
    assert not allows_unclean_election(EMPTY_IMAGE, config(), "t")
    told = config("topics.unclean_leader_election_enable=true", "topics.min_insync_replicas=2")
    assert told.static_configs == {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}
    assert allows_unclean_election(EMPTY_IMAGE, told, "t")
    (held,) = [one for one in configs_of_new_topic(EMPTY_IMAGE, told, {}) if one.name == UNCLEAN_CONFIG]
    assert (held.value, held.source) == ("true", "STATIC_BROKER_CONFIG")


def test_settings_of_a_static_voter_list_need_no_directories(tmp_path: Path) -> None:
    path = tmp_path / "static.toml"
    without = [line for line in FILE.splitlines() if "directory_id" not in line]
    path.write_text("\n".join([*without, "kraft_version = 0"]), encoding="utf-8")
    assert load(path).quorum.kraft_version == 0


def test_settings_own_address_is_that_of_the_own_voter_unless_bound_elsewhere(settings_file: Path) -> None:
    assert load(settings_file).http_bind == Address("127.0.0.1", 18001)
    assert load(settings_file, ("http.bind=[::1]:80",)).http_bind == Address("::1", 80)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("node_id=9", "node_id 9 is not among the voters [1, 2]"),
        ("node_id=many", "node_id: Input should be a valid integer, unable to parse string as an integer, not 'many'"),
        ("quorum.heartbeat_interval_ms=400", "heartbeat_interval_ms 400 is not under a third of"),
        ("quorum.election_timeout_max_ms=600", "election_timeout_max_ms 600 is not above election_timeout_min_ms 700"),
        ("quorum.colour=red", "quorum.colour: no setting has this name"),
        ("colour=red", "colour: no setting has this name"),
        (
            "http.node_id=1",
            "http.node_id: no setting has this name (node_id has, above the first [table] of a settings",
        ),
        ("super_users=x", "super_users: no setting has this name (access.super_users has, in the table [access] of a"),
        ("http.body_bytes_max=12", "http.body_bytes_max: Input should be greater than or equal to 1024, not 12"),
        ("http.bind=10.0.0.1:80", "10.0.0.1:80 is no loopback address, which needs shared_secret_file; tls.cert_file"),
        ("http.bind=here", "http.bind: it must be host:port with a port from 1 to 65535, not 'here'"),
        (
            'voters=[{id=1,quorum="a:1",http="a:2"}]',
            "voters [1] have no directory_id, which quorum.kraft_version 1 needs",
        ),
        (
            'voters=[{id=1,quorum="a:1",http="a:1",directory_id="AAAAAAAAAAAAAAAAAAAAZQ"}]',
            "voters use a:1 more than once",
        ),
        (
            'voters=[{id=1,quorum="a:1",http="[::1]:1",directory_id="AAAAAAAAAAAAAAAAAAAAZQ"}]',
            "a:1 is no loopback address, which needs shared_secret_file; tls.cert_file",
        ),
        ('voters=[{id=1,quorum="a:1",http="a:2",directory_id="x"}]', "is no uuid"),
        ("logging.level=loud", "logging.level: Input should be 'debug', 'info', 'warning' or 'error', not 'loud'"),
        ("node_id", "'node_id' is not name=value"),
        ("access.super_users=root", """access.super_users: must be a list, as ["a", "b"], not 'root'"""),
        ('access.login_mechanisms=["PLAIN"]', "'SCRAM-SHA-256' or 'SCRAM-SHA-512', not 'PLAIN'"),
        (
            'access.login_mechanisms=["SCRAM-SHA-256","SCRAM-SHA-512","SCRAM-SHA-256"]',
            "access.login_mechanisms: must have at most 2, not ['SCRAM-SHA-256', 'SCRAM-SHA-512', 'SCRAM-SHA-256']",
        ),
    ],
)
def test_settings_bad_value_is_refused_with_setting_value_and_rule(
    settings_file: Path, override: str, sentence: str
) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load(settings_file, (override,))
    assert sentence in str(refused.value)


def test_settings_bad_value_is_named_once(settings_file: Path) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load(settings_file, ('access.super_users=["root"]',))
    assert str(refused.value).count("not 'root'") == 1


def test_settings_unknown_environment_variable_of_the_prefix_is_refused(settings_file: Path) -> None:
    with pytest.raises(InvalidSettings, match="QUORATE_CONTROLLER_QUORUM__COLOUR: no setting has this name"):
        load(settings_file, environment={"QUORATE_CONTROLLER_QUORUM__COLOUR": "red", "HOME": "/"})


def test_settings_unreadable_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"none\.toml cannot be read"):
        load(tmp_path / "none.toml")
    damaged = tmp_path / "damaged.toml"
    damaged.write_text("node_id = = 1", encoding="utf-8")
    with pytest.raises(InvalidSettings, match=r"damaged\.toml cannot be read"):
        load(damaged)


@pytest.mark.parametrize("text", ["127.0.0.1", "host:", ":80", "host:0", "host:65536", "host:x", "::1:80", "a:1:2"])
def test_address_that_is_not_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it must be|in brackets"):
        parse_address(text)


@pytest.mark.parametrize(("text", "is_loopback"), [("localhost:1", True), ("[::1]:1", True), ("kafka:1", False)])
def test_address_text_form_and_reach(text: str, is_loopback: bool) -> None:
    assert str(parse_address(text)) == text
    assert parse_address(text).is_loopback is is_loopback


def test_configuration_reference_is_what_the_settings_say() -> None:
    page, made = PATH.read_text(encoding="utf-8").splitlines(), make_text().splitlines()
    differs = list(difflib.unified_diff(page, made, "docs/configuration.md", "the settings", lineterm="", n=0))
    again = "python -m quorate.scripts.generate_configuration_docs"
    assert not differs, "\n".join([f"docs/configuration.md is not what the settings say: run `{again}`", *differs])


def test_settings_below_a_table_are_told_where_they_belong_and_nothing_else_is_said(settings_file: Path) -> None:
    settings_file.write_text(FILE.partition("[quorum]")[0] + 'shared_secret_file = "secret"\n', encoding="utf-8")
    with pytest.raises(InvalidSettings) as refused:
        load(settings_file)
    place = "shared_secret_file has, above the first [table] of a settings file"
    assert str(refused.value) == f"voters.1.shared_secret_file: no setting has this name ({place})"


def test_settings_without_voters_are_refused_for_that(settings_file: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"voters: must have at least 1, not \[\]"):
        load(settings_file, ("voters=[]",))


def test_configuration_reference_names_every_setting() -> None:
    text = make_text()
    assert [name for name in setting_names(ControllerSettings) if f"`{name}`" not in text] == []


def test_urls_of_controllers_are_https_where_they_speak_tls(settings_file: Path) -> None:
    files = ("tls.cert_file=cert.pem", "tls.key_file=key.pem", 'tls.ca_files=["ca.pem"]')
    assert load(settings_file, files).tls.url("c1:18001") == "https://c1:18001"
    assert controller_parts(load(settings_file, files), "c", None, None).urls[2] == "https://127.0.0.1:18002"
    assert controller_parts(load(settings_file), "c", None, None).urls[2] == "http://127.0.0.1:18002"
    for named, rule in (
        (files[:2], "cert_file, key_file and ca_files belong together: name all of them, or none"),
        (files[2:], "cert_file, key_file and ca_files belong together: name all of them, or none"),
        (files[1:], "cert_file and key_file belong together: name both, or none"),
    ):
        with pytest.raises(InvalidSettings, match=f"tls: {rule}"):
            load(settings_file, named)
