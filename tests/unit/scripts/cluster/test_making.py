"""Making local clusters: fresh ones, twins, interrupted ones, and directories that are something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.process.quorum_parts import own_certificate_check
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.directory.directory import FormatPlan, MetadataDirectory, format_directory
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptBatch, StorageError
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.certificates.authority import Validity
from quorate.scripts.certificates.certificate_directory import CertificateDirectory
from quorate.scripts.certificates.local_authority import renew_local
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, node_paths
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, controller_directory, make_fresh, make_twin, remove
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.snapshots.checkpoints.loading import load_image

PORTS = Ports.from_base(20_000)


def test_fresh_cluster_is_there_when_its_plan_is(tmp_path: Path) -> None:
    plan = make_fresh(tmp_path / "var", PORTS, 3, 3)
    assert ClusterPlan.load(tmp_path / "var") == plan
    for controller in plan.controllers:
        opened = MetadataDirectory.open(RealDisk(), str(controller_directory(tmp_path / "var", controller)))
        opened.close()
        assert (opened.meta.cluster_id, opened.meta.node_id) == (plan.cluster_id, controller.id)


def test_secured_cluster_has_certificates_of_all_its_processes_and_goes_with_them(tmp_path: Path) -> None:
    plan = make_fresh(tmp_path / "var", PORTS, 3, 2, is_secured=True)
    for number in (1, 2, 3):
        paths = node_paths(tmp_path / "var", f"controller-{number}")
        TlsFiles(paths, is_server=True, check=own_certificate_check(plan.cluster_id, number))
    for number in (11, 12):
        TlsFiles(node_paths(tmp_path / "var", f"broker-{number}"), is_server=True)
    assert all(node.url is not None and node.url.startswith("https://") for node in plan.members.nodes)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "var" / CERTIFICATES_NAME).iterdir()}
    assert modes == {0o600}
    remove(tmp_path / "var")
    assert not list((tmp_path / "var").iterdir())


def test_settings_of_a_secured_controller_let_in_its_administrator_alone(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, make_fresh(tmp_path, PORTS, 1, 0, is_secured=True))
    settings = load_settings(ControllerSettings, tmp_path / "controller-1.toml", [], environment={})
    assert cluster.tls is not None
    assert (settings.access.authorizer, settings.access.super_users) == ("acl", ("User:CN=admin",))
    assert settings.tls.is_on
    assert settings.shared_secret_file is not None
    assert len(read_secret(settings.shared_secret_file)) >= 32


def test_certificates_that_end_soon_are_renewed_and_no_others(tmp_path: Path) -> None:
    make_fresh(tmp_path, PORTS, 1, 1, is_secured=True)
    made = CertificateDirectory(tmp_path / CERTIFICATES_NAME)
    assert renew_local(tmp_path) == []
    made.renew("broker-11", Validity.of(59))
    assert renew_local(tmp_path) == ["broker-11"]
    assert renew_local(tmp_path) == []


@pytest.mark.parametrize("moment", ["static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1"])
def test_twin_of_a_captured_cluster_holds_its_state_under_another_id(
    tmp_path: Path, kafka_data: Path, moment: str
) -> None:
    source = kafka_data / moment / "log"
    plan = make_twin(tmp_path / "twin", source, PORTS, "all")
    image = load_image(source)
    assert plan.cluster_id != plan.source_cluster_id
    assert plan.source_cluster_id is not None
    assert tuple(c.id for c in plan.controllers) == (1, 2, 3)
    assert {b for group in plan.brokers for b in group.ids} == {b.id for b in image.cluster.brokers.values()}
    for controller in plan.controllers:
        assert load_image(controller_directory(tmp_path / "twin", controller)) == image


def test_twin_plays_the_brokers_that_were_asked_for(tmp_path: Path, kafka_data: Path) -> None:
    source = kafka_data / "static/m2/log"
    for which, ids in (("live", {11, 12}), ("all", {11, 12, 13, 14}), ("none", set())):
        plan = make_twin(tmp_path / which, source, PORTS, which)
        assert {b for group in plan.brokers for b in group.ids} == ids


def test_twin_of_a_single_checkpoint_holds_its_state(tmp_path: Path, kafka_data: Path) -> None:
    source = next((kafka_data / "static/m4/log/__cluster_metadata-0").glob("*.checkpoint"))
    plan = make_twin(tmp_path / "twin", source, PORTS, "none")
    # A checkpoint at kraft.version 0 does not say who the voters were.
    assert tuple(c.id for c in plan.controllers) == (3000, 3001, 3002)
    assert load_image(controller_directory(tmp_path / "twin", plan.controllers[0])) == load_image(source)


@pytest.mark.parametrize("is_there", [False, True])
def test_making_that_is_interrupted_leaves_nothing_behind(
    tmp_path: Path, kafka_data: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    directory = tmp_path / "twin"
    if is_there:
        directory.mkdir()
    made = []

    def format_and_be_interrupted(disk: RealDisk, path: str, plan: FormatPlan) -> None:
        format_directory(disk, path, plan)
        made.append(path)
        if len(made) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("quorate.scripts.cluster.making.format_directory", format_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_twin(directory, kafka_data / "static/m2/log", PORTS, "all")
    assert list(tmp_path.rglob("*")) == ([directory] if is_there else [])


def test_damaged_source_leaves_nothing_behind(tmp_path: Path, kafka_data: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    data = bytearray((kafka_data / "static/m1/log/__cluster_metadata-0/00000000000000000000.log").read_bytes())
    data[1_000] ^= 1
    (source / "00000000000000000000.log").write_bytes(data)
    with pytest.raises(CorruptBatch):
        make_twin(tmp_path / "twin", source, PORTS, "live")
    assert not (tmp_path / "twin").exists()


def test_source_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file or directory"):
        make_twin(tmp_path / "twin", tmp_path / "nowhere", PORTS, "live")


def test_foreign_directory_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for attempt in (lambda: make_fresh(tmp_path, PORTS, 3, 3), lambda: remove(tmp_path)):
        with pytest.raises(ClusterError, match=r"thesis\.tex"):
            attempt()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_interrupted_making_is_made_again(tmp_path: Path) -> None:
    (tmp_path / ".making" / "controller-1").mkdir(parents=True)
    (tmp_path / "controller-2").mkdir()
    plan = make_fresh(tmp_path, PORTS, 3, 0)
    assert ClusterPlan.load(tmp_path) == plan


def test_controllers_without_a_plan_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "controller-1").mkdir()
    with pytest.raises(ClusterError, match="remove them yourself"):
        make_fresh(tmp_path, PORTS, 3, 0)


def test_unreadable_plan_is_one_sentence(tmp_path: Path) -> None:
    """Whoever only asks is not told to throw the cluster away."""
    for damaged in ('{"cluster_id": 7}', "{"):
        (tmp_path / "cluster.json").write_text(damaged)
        with pytest.raises(
            ClusterError, match=r"json cannot be read \(.*\): use another --dir, or name the controllers$"
        ):
            ClusterPlan.load(tmp_path)


_AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
os.chdir(sys.argv[1])
os.setgroups([]); os.setresgid(4242, 4242, 4242); os.setresuid(4242, 4242, 4242)
try:
    ClusterPlan.load(Path(sys.argv[2]))
except ClusterError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
@pytest.mark.parametrize(("closed", "called"), [("var/cluster.json", "it"), ("var", "var")])
def test_plan_that_one_may_not_read_is_said_to_be_its_owners(tmp_path: Path, closed: str, called: str) -> None:
    make_fresh(tmp_path / "var", PORTS, 1, 0)
    for path in (tmp_path, tmp_path / "var"):
        path.chmod(0o755)
    os.chown(tmp_path / closed, 4_343, -1)
    (tmp_path / closed).chmod(0o600)
    # From within: the directories above are for their owner alone.
    asked = [sys.executable, "-c", _AS_ANOTHER_USER, str(tmp_path), "var"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said == (
        f"var/cluster.json may not be read by user 4242: {called} is user 4343's: use another --dir, name the "
        "controllers, or ask as that user\n"
    )


def test_directory_of_a_cluster_that_is_a_file_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("")
    with pytest.raises(ClusterError, match="var is no directory"):
        ClusterPlan.load(tmp_path / "var")


def test_plan_that_another_user_has_put_there_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command would show its token to whom that names."""
    make_fresh(tmp_path, PORTS, 3, 0)
    if os.geteuid() == 0:
        os.chown(tmp_path / "cluster.json", 4_242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4_242)
    with pytest.raises(ClusterError, match=r"cluster\.json is user \d+'s"):
        ClusterPlan.load(tmp_path)


def test_plan_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cluster.json")
    with pytest.raises(ClusterError, match="cannot be read"):
        ClusterPlan.load(tmp_path)
