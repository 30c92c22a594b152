"""The forms of JSON that are no answer about the state of a cluster: lines of streams, and documents about files.

They say nothing of a state, and have no head (``documents.as_document``). Whoever writes them makes them by hand; tests
hold what is written against these.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from quorate.metadata_log.audit.read_lines import ReadLine
from quorate.metadata_log.audit.refusal_lines import RefusalLine
from quorate.scripts.certificates.findings import CertificateFinding
from quorate.scripts.cli.shell.state_form import StateDocument
from quorate.scripts.cli.snapshot.verification import CheckpointVerdict
from quorate.scripts.cluster.lending import LentNode
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory
from quorate.scripts.lost_majority.judgement import RunningController
from quorate.scripts.lost_majority.plan import RecoveryPlan
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.incidents.brokers import Incarnation
from quorate.snapshots.incidents.failovers import Failover
from quorate.snapshots.incidents.findings import HistorySpan
from quorate.snapshots.incidents.telling.incident import Incident
from quorate.snapshots.incidents.telling.timeline import TimelineEvent


class Wrapping(StrEnum):
    """The way in which documents stand on standard output."""

    DOCUMENT = "one document"
    #: With the head that answers have.
    ANSWER = "one answer"
    LIST = "one list of them"
    LINES = "a document a line"


class OwnForm(NamedTuple):
    """The form of one command's output."""

    wrapping: Wrapping
    made_of: Any


class _AsWritten(GenerateJsonSchema):
    """Times are texts, and lengths of time milliseconds."""

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "number"}


def _fields(of: type, **more: Any) -> type[BaseModel]:
    """The model of the fields of a class, with others."""
    hints = get_type_hints(of)
    fields: Any = {name: (kind, ...) for name, kind in (hints | more).items()}
    made: type[BaseModel] = create_model(of.__name__, **fields)
    return made


class ChangedField(BaseModel):
    """A field that differs; what is not there is null."""

    old: Any
    new: Any


class ChangedEntry(BaseModel):
    """A topic, partition, config or anything else that differs."""

    change: Literal["added", "removed", "changed"]
    name: str
    fields: dict[str, ChangedField]


class _HistoryChange(ChangedEntry):
    part: str


class _HistoryLine(BaseModel):
    base_offset: int
    end_offset: int
    epoch: int
    time_ms: int
    decided_by: int | None
    event: str | None
    principal: str | None
    address: str | None
    request_id: str | None
    proof: str | None
    proxy: str | None
    allowed_by: str | None
    why_unknown: str | None
    changes: list[_HistoryChange]


class _BrokenPlace(BaseModel):
    file: str
    line: int
    why: str


class _AuditChain(BaseModel):
    chain: str
    files: int | None
    lines: int | None
    begin: str | None
    end: str | None
    broken: _BrokenPlace | None
    unreadable: str | None


class _ComparedState(BaseModel):
    name: str
    state_offset: int
    epoch: int
    log_time_ms: int
    passed_over: list[PassedOver]


class _DifferentPart(BaseModel):
    added: int
    removed: int
    changed: int
    fields: dict[str, int]
    entries: list[ChangedEntry]


class _ImageDifference(BaseModel):
    same: bool
    matched_by_name: bool
    ignored: list[str]
    old: _ComparedState
    new: _ComparedState
    parts: dict[str, _DifferentPart]


class _LeftOut(BaseModel):
    records: int
    end_offset: int | None
    checkpoints: int
    damage: str | None


class _OfState(BaseModel):
    end_offset: int
    epoch: int
    last_record_ms: int
    digest: str
    next_epoch: int
    source_cluster_id: str | None
    passed_over: list[PassedOver]
    left_out: _LeftOut


class _MadeDirectory(BaseModel):
    id: int
    directory_id: str
    directory: str


class _Restored(_OfState):
    cluster_id: str
    has_vote: bool
    nodes: list[_MadeDirectory]


class _ExportedDirectory(_MadeDirectory):
    host: str
    port: int


class _Exported(_OfState):
    cluster_id: str
    is_static: bool
    checkpoint_offset: int
    voters: list[_ExportedDirectory]


class _Verified(BaseModel):
    is_sound: bool
    checkpoints: list[CheckpointVerdict]


class _FormattedSettings(BaseModel):
    cluster_id: str
    files: dict[str, str]


class _FormattedDirectory(BaseModel):
    cluster_id: str
    node_id: int
    directory: str


class _LoggedIn(BaseModel):
    controllers: list[str]
    principal: str
    ends_at_ms: int


class _ListedDrill(BaseModel):
    name: str
    hypothesis: str
    kind: str
    acts: list[str]
    expectations: list[Expectation]


class _Survey(BaseModel):
    directories: list[SurveyedDirectory]
    answers: list[RunningController]
    seed: str
    voters: list[int]
    intact: list[int]
    highest_epoch: int
    known_commit: int
    is_complete: bool
    sentences: list[str]


class _RecoveredVoter(BaseModel):
    node_id: int
    directory: str
    kept: str | None


class _Recovered(BaseModel):
    generation: int
    voters: list[_RecoveredVoter]


class Incidents(BaseModel):
    """The findings of a search for incidents, whoever searched, but for rows that are counts."""

    clusters: list[HistorySpan]
    incidents: list[_fields(Incident, severity=str)]  # type: ignore[valid-type]
    broker_incarnations: list[Incarnation]
    failovers: list[_fields(Failover)]  # type: ignore[valid-type]


class _IncidentsWithoutSpark(Incidents):
    reassignment_outcomes: list[dict[str, Any]]
    under_replicated: list[dict[str, Any]]


class _DumpedBatch(BaseModel):
    base: int
    last: int
    count: int
    epoch: int
    control: bool
    position: int
    timestamp: int
    size: int
    crc: int


class _DumpedRecord(BaseModel):
    file: str
    offset: int
    timestamp: int
    key_size: int
    value_size: int
    type: str
    version: int
    #: The fields of this type and version, as Kafka's own tools write them; their form is Kafka's.
    data: dict[str, Any]
    batch: _DumpedBatch


#: Command -> its form.
OWN_FORMS: Final[Mapping[str, OwnForm]] = {
    "audit reads": OwnForm(Wrapping.LINES, _fields(ReadLine, node=str)),
    "audit verify": OwnForm(Wrapping.LINES, _AuditChain),
    "certs show": OwnForm(Wrapping.LIST, CertificateFinding),
    "drill list": OwnForm(Wrapping.LIST, _ListedDrill),
    "format directory": OwnForm(Wrapping.DOCUMENT, _FormattedDirectory),
    "format settings": OwnForm(Wrapping.DOCUMENT, _FormattedSettings),
    "history": OwnForm(Wrapping.LINES, _HistoryLine),
    "image diff": OwnForm(Wrapping.DOCUMENT, _ImageDifference),
    "image show": OwnForm(Wrapping.DOCUMENT, StateDocument),
    "incidents": OwnForm(Wrapping.ANSWER, _IncidentsWithoutSpark),
    "log dump": OwnForm(Wrapping.LINES, _DumpedRecord),
    "login": OwnForm(Wrapping.DOCUMENT, _LoggedIn),
    "node list": OwnForm(Wrapping.LIST, LentNode),
    "recover apply": OwnForm(Wrapping.DOCUMENT, _Recovered),
    "recover plan": OwnForm(Wrapping.DOCUMENT, RecoveryPlan),
    "recover survey": OwnForm(Wrapping.DOCUMENT, _Survey),
    "refusals": OwnForm(Wrapping.LINES, _fields(RefusalLine, node=str)),
    "snapshot export": OwnForm(Wrapping.DOCUMENT, _Exported),
    "snapshot restore": OwnForm(Wrapping.DOCUMENT, _Restored),
    "snapshot show": OwnForm(Wrapping.DOCUMENT, StateDocument),
    "snapshot verify": OwnForm(Wrapping.DOCUMENT, _Verified),
    "timeline": OwnForm(Wrapping.LINES, _fields(TimelineEvent)),
}


def own_schema(form: OwnForm) -> dict[str, Any]:
    """The schema of one document, or of the list of them."""
    made_of = list[form.made_of] if form.wrapping is Wrapping.LIST else form.made_of  # type: ignore[name-defined]
    return TypeAdapter(made_of).json_schema(mode="serialization", schema_generator=_AsWritten)
