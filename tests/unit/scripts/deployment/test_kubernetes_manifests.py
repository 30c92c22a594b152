"""Manifests of Kubernetes: names, ports and selectors fit each other, and what they start is what the program takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from quorate.controller.http.routes.table import ROUTES
from quorate.scripts.deployment.handing_out import files_of
from quorate.scripts.logins.cluster_variables import REPLACED_VARIABLES
from tests.unit.scripts.deployment.what_files_say import parsed, unknown_variables

MANIFESTS: dict[str, list[dict[str, Any]]] = {
    file.name: list(yaml.safe_load_all(file.content)) for file in files_of("kubernetes")
}
ALL = [document for documents in MANIFESTS.values() for document in documents]
USER = 10001


def of_kind(kind: str, name: str = "") -> list[dict[str, Any]]:
    return [one for one in ALL if one["kind"] == kind and (not name or one["metadata"]["name"] == name)]


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each template of pods, with the name of what it belongs to."""
    for one in ALL:
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield one["metadata"]["name"], spec["template"]


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container.get("env", ())}


(SET,) = of_kind("StatefulSet")
(CONTROLLER,) = SET["spec"]["template"]["spec"]["containers"]


def test_every_object_has_a_version_a_kind_a_name_and_our_label() -> None:
    seen = [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in ALL]
    assert len(set(seen)) == len(seen) == 11
    versions = {kind: version for version, kind, _ in seen}
    assert versions == {
        "Service": "v1",
        "PersistentVolumeClaim": "v1",
        "PodDisruptionBudget": "policy/v1",
        "StatefulSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
    }
    assert {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in ALL} == {"quorate"}


def test_service_budget_and_affinity_are_about_the_pods_of_the_set_and_no_others() -> None:
    labels = SET["spec"]["template"]["metadata"]["labels"]
    (service,), (budget,) = of_kind("Service"), of_kind("PodDisruptionBudget")
    assert service["metadata"]["name"] == SET["spec"]["serviceName"]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    (rule,) = SET["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    selectors = (
        SET["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        budget["spec"]["selector"]["matchLabels"],
        rule["labelSelector"]["matchLabels"],
    )
    assert all(selector == labels for selector in selectors)
    others = [template["metadata"]["labels"] for name, template in templates() if name != "quorate"]
    assert len(others) == 4
    assert labels not in others
    assert SET["spec"]["replicas"] - budget["spec"]["maxUnavailable"] > SET["spec"]["replicas"] / 2


def test_ports_of_the_service_are_those_of_the_container_and_of_its_probes() -> None:
    named = {port["name"]: port["containerPort"] for port in CONTROLLER["ports"]}
    (service,) = of_kind("Service")
    assert {port["targetPort"]: port["port"] for port in service["spec"]["ports"]} == named
    assert environment(CONTROLLER)["QUORATE_CONTROLLER_HTTP__BIND"] == f"0.0.0.0:{named['http']}"
    routes = {route.path for route in ROUTES}
    for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        get = CONTROLLER[probe]["httpGet"]
        assert get == {"path": path, "port": "http", "scheme": "HTTPS"}
        assert path in routes
    addresses = environment(of_kind("CronJob")[0]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0])
    wanted = [f"quorate-{node}.quorate:{named['http']}" for node in range(SET["spec"]["replicas"])]
    assert addresses["QUORATE_CONTROLLERS"].split(",") == wanted


def test_founding_makes_the_volume_of_each_pod_with_that_pod_s_settings() -> None:
    (claim,) = SET["spec"]["volumeClaimTemplates"]
    pods = [f"{SET['metadata']['name']}-{number}" for number in range(SET["spec"]["replicas"])]
    volumes = [f"{claim['metadata']['name']}-{pod}" for pod in pods]
    claims = [one for one in MANIFESTS["founding.yaml"] if one["kind"] == "PersistentVolumeClaim"]
    assert [one["metadata"]["name"] for one in claims] == volumes
    assert all(one["spec"] == claim["spec"] for one in claims)
    jobs = [job["spec"]["template"]["spec"] for job in of_kind("Job")]
    mounted = [job["volumes"][0]["persistentVolumeClaim"]["claimName"] for job in jobs]
    made = [parsed(job["containers"][0]["args"]) for job in jobs]
    started = [parsed([a.replace("$(POD_NAME)", pod) for a in CONTROLLER["args"]]) for pod in pods]
    assert mounted == volumes
    assert [one["config"] for one in made] == [one["config"] for one in started]
    assert all(one["founding"] for one in made)
    assert CONTROLLER["env"][0] == {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert [job["volumes"][1] for job in jobs] == SET["spec"]["template"]["spec"]["volumes"] * 3


@pytest.mark.parametrize(("name", "template"), [*templates()])
def test_pods_have_no_right_that_they_do_not_need(name: str, template: dict[str, Any]) -> None:
    pod = template["spec"]
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    security = pod["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"], security["fsGroup"]) == (True, USER, USER)
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}
        assert "command" not in container, "the image's own entry point takes the arguments"
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        claimed = (
            {one["metadata"]["name"] for one in SET["spec"]["volumeClaimTemplates"]} if name == "quorate" else set()
        )
        assert mounts == {volume["name"] for volume in pod["volumes"]} | claimed
    # root's files, lent to the group that `fsGroup` makes theirs: a secret that others may read is refused.
    assert all(volume["secret"]["defaultMode"] == 0o440 for volume in pod["volumes"] if "secret" in volume)


@pytest.mark.parametrize(("name", "template"), [*templates()])
def test_command_lines_and_variables_are_those_of_the_program(name: str, template: dict[str, Any]) -> None:
    for container in template["spec"]["containers"]:
        assert parsed([argument.replace("$(POD_NAME)", "quorate-0") for argument in container["args"]])
        assert not unknown_variables(sorted(environment(container)), sorted(REPLACED_VARIABLES))
