"""The files themselves: what each one is for, and its content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

RULES: Final = "rules.yml"
DASHBOARD: Final = "dashboard.json"
SCRAPE: Final = "scrape.yml"

#: Name -> what to do with it.
FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        RULES: "alert rules: name it in rule_files of prometheus.yml",
        SCRAPE: "two jobs for scrape_configs of prometheus.yml: put in your hosts, token and CA",
        DASHBOARD: "a dashboard: import it in Grafana",
    }
)


def content(name: str) -> bytes:
    """The bytes of one of ``FILES``."""
    return Path(__file__).with_name(name).read_bytes()
