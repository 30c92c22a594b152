"""Secrets in what jobs write and tell: they are not there, unless they are asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from quorate.controller.configs.resources import RESOURCE_TYPES, SHOWN_NAMES, definitions_of
from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.records.hidden_values import ALL_CONFIGS, HIDDEN, IsSecret, hides, no_secrets
from quorate.metadata_log.records.records import ConfigRecord, Record
from quorate.pipeline.comparing.entries import ENTRY_KINDS, entry_differences
from quorate.pipeline.comparing.secrets import Secrets
from quorate.pipeline.fold.catalogue import Catalogue
from quorate.pipeline.fold.elements import empty_elements
from quorate.pipeline.fold.state import FoldedState
from quorate.pipeline.fold.timeline import Located
from quorate.pipeline.history.catalogue import CatalogueVersions
from quorate.pipeline.history.cells import RareRecord
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.jobs.differences import first_difference
from quorate.pipeline.tables.state_tables import catalogue_tables
from tests.secret_records import SECRETS, write_secret_records

KINDS = {kind.name: kind for kind in ENTRY_KINDS}


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    """Of a log with one of each secret, and a config that is none."""
    data = write_secret_records(tmp_path).read_bytes()
    return [one.record for one in iter_records(data)]


def catalogue_of(records: list[Record]) -> Catalogue:
    catalogue = Catalogue()
    catalogue.apply_all([Located(offset, record) for offset, record in enumerate(records)])
    return catalogue


def found_in(value: object) -> set[str]:
    return {secret for secret in SECRETS if secret in str(value)}


@pytest.mark.parametrize(("is_secret", "found"), [(SHOWN_NAMES, set()), (no_secrets, set(SECRETS))])
def test_tables_of_a_state_hold_secrets_only_where_they_were_asked_for(
    records: list[Record], is_secret: IsSecret, found: set[str]
) -> None:
    tables = catalogue_tables(catalogue_of(records), "c", is_secret)
    rows = [row for table in tables.values() for row in table.to_pylist()]

    assert found_in(rows) == found
    assert {"name": "retention.ms", "value": "1000"}.items() <= tables["configs"].to_pylist()[0].items()
    assert sum(row["kind"] == "USER_SCRAM_CREDENTIAL_RECORD" for row in tables["entries"].to_pylist()) == 1


def test_history_has_each_version_of_a_secret_and_none_of_its_values(records: list[Record]) -> None:
    secret = next(one for one in records if isinstance(one, ConfigRecord) and one.name == "ssl.keystore.password")
    story = [*records, replace(secret, value="keystore-password-2")]
    rare = [RareRecord(offset, 0, record, 0) for offset, record in enumerate(story)]
    versions = CatalogueVersions.of(Timeline(rare, len(story)), None)
    rows = versions.tables("c", SHOWN_NAMES)["config_versions"].to_pylist()

    assert [row["value"] for row in rows if row["name"] == secret.name] == [HIDDEN, HIDDEN]
    assert found_in(rows) == set()
    # An append goes on with it.
    assert found_in([record.record for record in versions.state()]) >= {"keystore-password"}


def test_difference_that_an_audit_tells_is_without_secrets(records: list[Record]) -> None:
    ours, nothing = (FoldedState(empty_elements(), catalogue_of(some)) for some in (records[-1:], []))
    for is_secret, found in ((SHOWN_NAMES, set()), (no_secrets, set(SECRETS[2:]))):
        problem = first_difference(ours, nothing, 7, "checkpoint x", is_secret).problem
        assert problem.startswith("not in checkpoint x: USER_SCRAM_CREDENTIAL_RECORD {")
        assert found_in(problem) == found


def test_comparison_tells_that_secrets_differ_and_not_what_they_are() -> None:
    key = {"resource_type": 4, "resource": "", "name": "ssl.keystore.password"}
    line = {"key": key, "change": "changed", "field": "value", "old": "secret-a", "new": "secret-b"}
    known = line | {"key": key | {"name": "background.threads"}}
    rule = Secrets(SHOWN_NAMES, are_compared=True)

    assert (rule.told(line)["old"], rule.told(line)["new"]) == ("one", "another")
    assert rule.told(known) == known


def test_comparison_with_tables_that_hide_secrets_leaves_them_out() -> None:
    configs = pa.table(
        {"resource_type": [4, 4], "name": ["ssl.keystore.password", "background.threads"], "value": ["a", "b"]}
    )
    hidden = Secrets(SHOWN_NAMES, are_compared=False).hidden(configs)
    credential = {"name": "ana", "mechanism": 1, "salt": "s", "storedKey": "k", "serverKey": "k"}
    sides = [
        [{"kind": "USER_SCRAM_CREDENTIAL_RECORD", "data": json.dumps(credential | said)}]
        for said in ({}, {"salt": HIDDEN, "storedKey": HIDDEN, "serverKey": HIDDEN})
    ]

    assert hidden["value"].to_pylist() == [HIDDEN, "b"]
    assert Secrets(SHOWN_NAMES, are_compared=True).hidden(configs) is configs
    for is_hidden in (True, False):
        told = entry_differences(KINDS["credentials"], *sides, own=True, limit=9, hidden=is_hidden)
        assert told.is_equal is is_hidden


def test_rule_is_that_of_every_other_output() -> None:
    for number in (*RESOURCE_TYPES.values(), 99):
        assert not any(SHOWN_NAMES(number, name) for name in definitions_of(number))
        assert SHOWN_NAMES(number, "of.nobody.known")
        assert SHOWN_NAMES(number, "ssl.keystore.password")
    assert hides(ALL_CONFIGS)
    assert not hides(no_secrets)
