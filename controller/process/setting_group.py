"""The base of all groups of settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
