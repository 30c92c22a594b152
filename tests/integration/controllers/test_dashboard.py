"""The dashboard on a local cluster, with a real Prometheus between them; skipped where none is installed."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from quorate.scripts.certificates.local_files import CERTIFICATES_NAME
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.ports import LOOPBACK, free_ports
from quorate.scripts.watching.files import DASHBOARD, SCRAPE, content
from tests.alerts.captures import targets_of
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

PROMETHEUS = shutil.which("prometheus")
READY_S = 60
#: The variables of the dashboard, as they are where nobody chose others.
CHOSEN = {"$job": "quorate-controllers", "$broker_job": "quorate-brokers"}


def panels() -> dict[str, list[str]]:
    """Title -> queries."""
    found = {}
    for panel in json.loads(content(DASHBOARD))["panels"]:
        queries = [target["expr"] for target in panel.get("targets", ())]
        for variable, value in CHOSEN.items():
            queries = [query.replace(variable, value) for query in queries]
        if queries:
            found[panel["title"]] = queries
    return found


def settings_for(cluster: LocalCluster) -> dict[str, Any]:
    """The scrape config of the package, for a cluster of `quorate up`; a second is what a test waits for."""
    certificates = cluster.directory / CERTIFICATES_NAME
    files = {"ca_file": "ca.pem", "cert_file": "client-admin.pem", "key_file": "client-admin.key"}
    config: dict[str, Any] = yaml.safe_load(content(SCRAPE))
    del config["rule_files"]
    config["global"] = {"scrape_interval": "1s"}
    for job in config["scrape_configs"]:
        del job["authorization"]
        job["tls_config"] = {name: str(certificates / file) for name, file in files.items()}
        targets = [urlsplit(one.url).netloc for one in targets_of(cluster.plan) if one.job == job["job_name"]]
        job["static_configs"] = [{"targets": targets}]
    return config


@asynccontextmanager
async def prometheus(directory: Path, config: dict[str, Any]) -> AsyncIterator[str]:
    """Its address, for as long as it runs."""
    assert PROMETHEUS is not None
    file = directory / "prometheus.yml"
    file.write_text(json.dumps(config))
    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        PROMETHEUS,
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'series'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=error",
    )
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        process.kill()
        await process.wait()


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed: it answers the dashboard's queries")
async def test_every_query_of_every_panel_has_data_on_a_local_cluster(tmp_path: Path) -> None:
    asked = panels()
    assert len(asked) > 20
    async with (
        running_cluster(tmp_path / "var", 3, 2) as cluster,
        prometheus(tmp_path, settings_for(cluster)) as url,
        aiohttp.ClientSession(url) as session,
    ):

        async def has_data(query: str) -> bool:
            try:
                async with session.get("/api/v1/query", params={"query": query}) as answer:
                    return answer.ok and bool((await answer.json())["data"]["result"])
            except aiohttp.ClientConnectionError:
                return False  # it does not listen yet

        for title, queries in asked.items():
            for query in queries:
                await eventually(partial(has_data, query), f"{title}: data of {query}", READY_S)
