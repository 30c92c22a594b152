"""The JSON Schemas of what commands write with `--json`, made of the models that they write.

Their files are in `docs/schemas`; `python -m quorate.scripts.generate_answer_schemas` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from quorate.controller.api.answers.answer_models import CanStopReply, WhatIfReply
from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.api.resources import (
    BrokersReply,
    ClusterReply,
    ControllersReply,
    PartitionsReply,
    QuorumReply,
    TopicsReply,
)
from quorate.controller.protocol.acls import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from quorate.controller.protocol.brokers import UnregisterBrokerResponse
from quorate.controller.protocol.configs import DescribeConfigsResult
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse
from quorate.controller.protocol.features import DescribeFeaturesResponse
from quorate.controller.protocol.labels import AlterLabelsResponse
from quorate.controller.protocol.partitions import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
)
from quorate.controller.protocol.quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse
from quorate.controller.protocol.scram import AlterUserScramCredentialsResponse, DescribeUserScramCredentialsResponse
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)
from quorate.controller.protocol.topics import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse
from quorate.scripts.cli.access.context import ContextsReply
from quorate.scripts.cli.brokers import BrokerDescription
from quorate.scripts.cli.feed import FeedReaders
from quorate.scripts.cli.labels import FoundLabels
from quorate.scripts.cli.moves.drain import Decommissioned
from quorate.scripts.cli.moves.running import MoveReport
from quorate.scripts.cli.plans.apply import AppliedSteps
from quorate.scripts.cli.shell.job_forms import JOB_FORMS
from quorate.scripts.cli.shell.own_forms import OWN_FORMS, OwnForm, Wrapping, own_schema
from quorate.scripts.cli.snapshot.backup import BackedUp
from quorate.scripts.cli.snapshot.listing import ListedCheckpoints
from quorate.scripts.cli.snapshot.save import Saved
from quorate.scripts.cli.snapshot.taking import TakenCheckpoints
from quorate.scripts.cli.topics.partitions import NamedPartitions
from quorate.scripts.cli.topics.reassign import Applied, ReassignmentProposal
from quorate.scripts.cli.topics.reassignment_steps import MovedPartitions
from quorate.scripts.cli.topics.topics import TopicDescriptions
from quorate.scripts.drills.outcome import DrillOutcome
from quorate.scripts.lost_majority.verification import RecoveryVerification
from quorate.scripts.terminal.programs.documents import SCHEMA_VERSION
from quorate.scripts.terminal.survey import ControllerSurvey

#: Command -> the model of its answer.
ANSWERS: Final[Mapping[str, type[BaseModel]]] = {
    "acls add": CreateAclsResponse,
    "acls list": DescribeAclsResponse,
    "acls remove": DeleteAclsResponse,
    "apply": AppliedSteps,
    "backup": BackedUp,
    "brokers decommission": Decommissioned,
    "brokers describe": BrokerDescription,
    "brokers drain": MoveReport,
    "brokers feed": FeedReaders,
    "brokers list": BrokersReply,
    "brokers unregister": UnregisterBrokerResponse,
    "can-stop broker": CanStopReply,
    "can-stop controller": CanStopReply,
    "cluster balance": MoveReport,
    "cluster describe": ClusterReply,
    "configs describe": DescribeConfigsResult,
    "context list": ContextsReply,
    "drill run": DrillOutcome,
    "elect": ElectLeadersResponse,
    "explain": ExplainReply,
    "features describe": DescribeFeaturesResponse,
    "labels list": FoundLabels,
    "labels remove": AlterLabelsResponse,
    "labels set": AlterLabelsResponse,
    "partitions describe": NamedPartitions,
    "partitions list": PartitionsReply,
    "quorum controllers": ControllersReply,
    "quorum describe": QuorumReply,
    "quotas list": DescribeClientQuotasResponse,
    "quotas remove": AlterClientQuotasResponse,
    "quotas set": AlterClientQuotasResponse,
    "reassign apply": Applied,
    "reassign cancel": AlterPartitionReassignmentsResponse,
    "reassign list": ListPartitionReassignmentsResponse,
    "reassign plan": ReassignmentProposal,
    "reassign verify": MovedPartitions,
    "recover verify": RecoveryVerification,
    "snapshot list": ListedCheckpoints,
    "snapshot save": Saved,
    "snapshot take": TakenCheckpoints,
    "status": ControllerSurvey,
    "tokens create": CreateDelegationTokenResponse,
    "tokens expire": ExpireDelegationTokenResponse,
    "tokens list": DescribeDelegationTokenResponse,
    "tokens renew": RenewDelegationTokenResponse,
    "topics add-partitions": CreatePartitionsResponse,
    "topics create": CreateTopicsResponse,
    "topics delete": DeleteTopicsResponse,
    "topics deletions": DescribeTopicDeletionsResponse,
    "topics describe": TopicDescriptions,
    "topics list": TopicsReply,
    "topics set-replication-factor": MoveReport,
    "undo": AppliedSteps,
    "users list": DescribeUserScramCredentialsResponse,
    "users remove": AlterUserScramCredentialsResponse,
    "users set": AlterUserScramCredentialsResponse,
    "what-if": WhatIfReply,
}

#: Command -> the form of what is not one model's answer.
FORMS: Final[Mapping[str, OwnForm]] = {**OWN_FORMS, **JOB_FORMS}

#: Of forms in whose documents it does not stand.
_VERSION_SAID: Final = "schema_version "
#: Before the fields of each answer (``documents.as_document``).
_HEAD: Final[Mapping[str, Any]] = {
    "schema_version": {"const": SCHEMA_VERSION},
    "as_of": {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "offset": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "time": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["offset", "time"],
            },
            {"type": "null"},
        ]
    },
}


def schema_of(command: str) -> dict[str, Any]:
    """The schema of what a command writes."""
    begin = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"quorate {command} --json"}
    form = FORMS.get(command)
    made = ANSWERS[command].model_json_schema(mode="serialization") if form is None else own_schema(form)
    if form is not None and form.wrapping is not Wrapping.ANSWER:
        return begin | made | {"$comment": f"{form.wrapping}; {_VERSION_SAID}{SCHEMA_VERSION}"} | begin
    return {
        **begin,
        "type": "object",
        "properties": {**_HEAD, **made.get("properties", {})},
        "required": [*_HEAD, *made.get("required", [])],
        "$defs": made.get("$defs", {}),
    }


def version_of(schema: Mapping[str, Any]) -> int:
    """The version of the forms to which a schema belongs."""
    if "$comment" in schema:
        return int(schema["$comment"].rpartition(_VERSION_SAID)[2])
    version: int = schema["properties"]["schema_version"]["const"]
    return version


def schema_text(schema: Mapping[str, Any]) -> str:
    """The text of its file."""
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def file_name(command: str) -> str:
    """As `topics-list.json`."""
    return f"{command.replace(' ', '-')}.json"


def broken_promises(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The places where whoever reads documents by the old schema does not understand those of the new one.

    A field that is gone, or may be missing, or means something else; new fields, and new words of an enum, are none.
    """
    return sorted(set(_broken(old, old, new, new, "", frozenset())))


def _broken(
    old: Any, old_root: Mapping[str, Any], new: Any, new_root: Mapping[str, Any], at: str, within: frozenset[str]
) -> Iterator[str]:
    reference = old.get("$ref") if isinstance(old, dict) else None
    if reference is not None:
        if reference in within:
            return  # a part that contains itself
        within |= {reference}
    old, new = _resolved(old, old_root), _resolved(new, new_root)
    if not isinstance(old, dict) or not isinstance(new, dict):
        if old != new:
            yield at or "/"
        return
    for name, one in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{at}/{name}"
        else:
            yield from _broken(one, old_root, new["properties"][name], new_root, f"{at}/{name}", within)
    yield from (f"{at}/{name}" for name in {*old.get("required", [])} - {*new.get("required", [])})
    if not {*old.get("enum", [])} <= {*new.get("enum", [])}:
        yield at or "/"
    alternatives = [*old.get("anyOf", [])], [*new.get("anyOf", [])]
    if len(alternatives[0]) != len(alternatives[1]):
        yield at or "/"
    for before, after in zip(*alternatives, strict=False):
        yield from _broken(before, old_root, after, new_root, at, within)
    for key in ("items", "additionalProperties"):
        if key in old:
            yield from _broken(old[key], old_root, new.get(key), new_root, f"{at}/*", within)
    if {key: old[key] for key in ("type", "const", "format", "prefixItems") if key in old} != {
        key: new[key] for key in ("type", "const", "format", "prefixItems") if key in new
    } and at != "/schema_version":
        yield at or "/"


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(schema, dict) or "$ref" not in schema:
        return schema
    return root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2])
