"""Commands whose JSON is no answer about a cluster's state write it in the form that their schemas tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.audit_log import AuditLog
from quorate.controller.logs.read_log import ReadLog
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.metadata_log.audit.refusal_lines import Refusal
from quorate.metadata_log.records.hidden_values import no_secrets
from quorate.metadata_log.records.records import ConfigRecord
from quorate.scripts.cli.logs.image import show_image
from quorate.scripts.cli.shell.own_forms import OWN_FORMS
from quorate.scripts.cli.shell.state_form import StateDocument
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import CLIENT_METRICS_RESOURCE, Provenance
from quorate.snapshots.replay.replay import replay
from tests.integration.answers_by_schema import check_answer
from tests.integration.commands import alone
from tests.record_stream import RecordStream, as_runs

CAPTURES = Path(__file__).parents[4] / "data" / "kafka"
LOG = str(CAPTURES / "static" / "m3" / "log")
LOG_WITH_VOTERS = str(CAPTURES / "dynamic-small" / "m1" / "log")
#: A kind of resource that has no name.
OTHER_RESOURCE = 99
ANA = Origin("User:ana", "10.0.0.1", "a1")


def audited(at: Path) -> str:
    """A directory with lines of every kind beside its log."""
    audit, refusals, reads = AuditLog(at, lambda: 1), RefusalLog(at), ReadLog(at)
    audit.start()
    audit.note(DecidedWrite("create_topics", ANA, 1, 2, None))
    refusals.note(Refusal("POST /v1/topics", "User:eve", "10.0.0.9", "INVALID_REQUEST"), "r1", "no")
    refusals.newest(1)
    audit.close()
    reads.note("GET /v1/users", ANA._replace(proof="scram"))
    reads.flush()
    return str(at)


def formatted(at: Path) -> list[str]:
    """The words that make settings of a controller."""
    return ["--controller", "1@127.0.0.1:9093:8080", "--metadata", str(at / "data"), "--to", str(at / "new")]


#: Of each command its words, of a directory that is empty.
WORDS: dict[str, Callable[[Path], list[str]]] = {
    "audit reads": lambda at: [audited(at)],
    "audit verify": lambda at: [audited(at)],
    "certs show": lambda at: [str(at)],
    "drill list": lambda _: [],
    "format directory": lambda at: ["--founding", "--config", str(at / "new" / "controller-1.toml")],
    "format settings": formatted,
    "history": lambda _: ["--from", LOG],
    "image diff": lambda _: [f"{LOG}@9000", LOG],
    "image show": lambda _: ["--from", LOG_WITH_VOTERS],
    "incidents": lambda _: ["--from", LOG],
    "log dump": lambda _: [LOG],
    "refusals": lambda at: ["--from", audited(at)],
    "snapshot export": lambda at: ["--from", LOG, "--to", str(at / "kafka"), "--voter", "1@k1:9093"],
    "snapshot restore": lambda at: ["--from", LOG, "--nodes", "3", "--to", str(at / "new")],
    "snapshot show": lambda _: [LOG_WITH_VOTERS],
    "snapshot verify": lambda _: [LOG_WITH_VOTERS],
    "timeline": lambda _: ["--from", LOG],
}
#: The command that has to be given before.
BEFORE: dict[str, Callable[[Path], list[str]]] = {
    "certs show": lambda at: ["certs", "init", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--dir", str(at)],
    "format directory": lambda at: ["format", "settings", *formatted(at)],
}
#: Their clusters run in tests of their own.
ON_CLUSTERS = {"login", "node list", "recover apply", "recover plan", "recover survey"}


@pytest.mark.parametrize("command", WORDS)
async def test_own_form_is_the_one_that_the_schema_tells(command: str, tmp_path: Path) -> None:
    """Whatever runs a command in a test holds its output against its schema (``tests.integration.commands``)."""
    if command in BEFORE:
        await alone(*BEFORE[command](tmp_path))
    ended = await alone(*command.split(), *WORDS[command](tmp_path), "--json")

    assert ended.code in (exit_codes.DONE, exit_codes.REFUSED), ended
    assert len(ended.out) > 2


def test_every_own_form_is_looked_at() -> None:
    assert OWN_FORMS.keys() == WORDS.keys() | ON_CLUSTERS


def test_random_states_are_of_their_form_in_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    filled = {"voters"}  # of a captured log, above
    rare = [ConfigRecord(kind, "one", "key", "value") for kind in (CLIENT_METRICS_RESOURCE, OTHER_RESOURCE)]
    for seed in range(5):
        records = [*RecordStream(Random(seed)).records(80), *rare]
        image = replay(EMPTY_IMAGE, as_runs(records), Provenance(99, 4, 1234))
        show_image(Path(), image, [PassedOver("a", 7, None, "b")], no_secrets, as_json=True, as_records=False)
        out = capsys.readouterr().out
        check_answer(["image", "show", "--json"], out)
        filled |= {name for name, part in json.loads(out).items() if part}
    assert filled == StateDocument.model_fields.keys()
