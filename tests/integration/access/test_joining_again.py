"""A controller that lost its directory, where an authorizer decides: it asks the others as who it is."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_parts import AccessParts
from quorate.metadata_log.directory.meta_properties import decode_meta_properties
from quorate.metadata_log.private_files import read_secrets
from quorate.scripts.cluster.own_machines import NewController, write_settings
from tests.integration.commands import Ended, alone
from tests.integration.http_stage import CLUSTER_ID, Stage, stage

GENERATION = 1001


def authorized(home: Path, node: int) -> AccessParts:
    """The access control of a controller whose secret is that of the settings there, which are written later."""
    seals = Seals(partial(read_secrets, home / "secret"), node, frozenset({1, 2, 3}), lambda: time.time() * 1000)
    certificates = CertificateIdentities(CLUSTER_ID, PrincipalMapping())
    authentication = IdentityAuthentication(TokensFile(None), certificates, seals, frozenset())
    return AccessParts(authentication, Authorizer(), frozenset(), seals)


@asynccontextmanager
async def refounded(home: Path) -> AsyncIterator[tuple[Stage, Path]]:
    """Three controllers whose quorum was rebuilt, and the settings of the second, whose directory is gone."""
    async with stage(3, access=partial(authorized, home)) as s:
        for member in s.members.values():
            member.soft.generation = GENERATION
        addresses = enumerate((url.removeprefix("http://") for url in s.urls), start=1)
        named = [NewController(node, f"127.0.0.1:{node}", http) for node, http in addresses]
        files = write_settings(home, CLUSTER_ID, named, str(home / "data-{id}"), admin="User:root")
        await s.members[2].stop_serving()
        yield s, files["controller-2.toml"]


async def rejoin(settings: Path, *options: str) -> Ended:
    return await alone("recover", "rejoin", "--config", str(settings), *options)


def made(home: Path) -> int | None:
    """The generation of the directory that was made; None: there is none."""
    path = home / "data-2" / "meta.properties"
    return decode_meta_properties(path.read_bytes(), str(path)).generation if path.exists() else None


async def test_controller_joins_again_in_the_generation_that_the_others_tell_to_a_controller(tmp_path: Path) -> None:
    async with refounded(tmp_path) as (_, settings):
        formatted = await alone("format", "directory", "--founding", "--config", str(settings))
        assert formatted.code == 1
        assert (
            f"records of cluster {CLUSTER_ID}: a directory made as those of a new cluster would vote" in formatted.err
        )
        ended = await rejoin(settings)
    assert (ended.code, made(tmp_path)) == (0, GENERATION), ended


async def test_refusal_is_not_taken_for_silence_and_nothing_is_made(tmp_path: Path) -> None:
    """The settings name a secret that is not the quorum's: whoever is there does not say its generation."""
    async with refounded(tmp_path) as (s, settings):
        (tmp_path / "other").touch(0o600)
        (tmp_path / "other").write_text("n" * 40)
        settings.write_text(settings.read_text().replace(str(tmp_path / "secret"), str(tmp_path / "other")))
        refused = await rejoin(settings)
        assert (refused.code, made(tmp_path)) == (1, None), refused
        assert f"{s.urls[0]} takes connections and does not say how its cluster is (the seal of this" in refused.err
        assert "say --generation" in refused.err
        assert ((await rejoin(settings, "--generation", "7")).code, made(tmp_path)) == (0, 7)


async def test_controller_of_another_cluster_is_not_taken_for_silence(tmp_path: Path) -> None:
    async with refounded(tmp_path) as (s, settings):
        settings.write_text(settings.read_text().replace(CLUSTER_ID, "AAAAAAAAAAAAAAAAAAAAAQ"))
        refused = await rejoin(settings)
    assert (refused.code, made(tmp_path)) == (1, None), refused
    assert f"{s.urls[0]} is a controller of cluster {CLUSTER_ID}, not of AAAAAAAAAAAAAAAAAAAAAQ" in refused.err
