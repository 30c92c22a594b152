"""Plans in words: a line for each thing that a step is about, in the order of its request."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from quorate.controller.api.answers.plan_models import ChangePlan, FactValue, PlanStep
from quorate.controller.plans.differences import shown
from quorate.controller.plans.setting_facts import acl_line, entity_text, filter_text, resource_text
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
)
from quorate.controller.protocol.acls import CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest, ResourceName
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.controller.protocol.labels import AlterLabelsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.terminal.harmless import shown_line
from quorate.scripts.terminal.output import counted, format_time

#: So many changes are shown where not all are wanted: a plan may move ten thousand partitions.
SHOWN_MAX: Final = 10
_Facts = Mapping[str, Mapping[str, FactValue]]


def plan_lines(plan: ChangePlan, all_by: str | None) -> Iterator[str]:
    """A whole plan: what it was made on, and what it would do, step by step.

    ``all_by``: where the changes are that are more than the first; None: all are shown.
    """
    what = f"takes {plan.undoes} back" if plan.undoes is not None else f"by quorate {plan.made_by}"
    yield f"Plan of {format_time(plan.made_ms)} {what}, on the state at offset {plan.state_offset}:"
    left, more = sys.maxsize if all_by is None else SHOWN_MAX, 0
    for number, step in enumerate(plan.steps, 1):
        lines = step_lines(step)
        if left and len(plan.steps) > 1:
            yield f"{number}. {counted(len(lines), 'change')}" + (", then waits" if step.waits else "")
        yield from (f"  {shown_line(line)}" for line in lines[:left])
        more += max(0, len(lines) - left)
        left = max(0, left - len(lines))
    if more:
        yield f"  {more_line(more, all_by)}"
    yield from _waiting(plan)


def more_line(count: int, all_by: str | None) -> str:
    """The line in the place of the changes that are not shown."""
    return f"... and {count:,} more ({all_by})"


def _waiting(plan: ChangePlan) -> Iterator[str]:
    """The brokers that moves would wait for, with how many."""
    counts: Counter[tuple[int, FactValue]] = Counter()
    for step in plan.steps:
        facts = {fact.about: fact.values for fact in step.facts}
        request = step.change.alter_partition_reassignments
        for topic in () if request is None else request.topics:
            for one in topic.partitions:
                counts.update(_down(one.replicas or [], facts))
    for (broker, state), count in sorted(counts.items()):
        yield f"{counted(count, 'move')} would wait for broker {broker}, which is {state}"


def step_lines(step: PlanStep) -> list[str]:
    """A line for each thing that the step's request names, as ``grow topic orders from 3 to 6 partitions``."""
    ((operation, request),) = step.change.requests.items()
    return list(_WORDS[operation](request, {fact.about: fact.values for fact in step.facts}))


def _values(facts: _Facts, about: str) -> Mapping[str, FactValue]:
    """The fact about a thing: none, if the plan was not made by a command."""
    return facts.get(about) or {}


def _creation(request: CreateTopicsRequest, facts: _Facts) -> Iterator[str]:
    for topic in request.topics:
        first = topic.assignments[0].broker_ids if topic.assignments else None
        partitions = len(topic.assignments) or topic.num_partitions
        factor = topic.replication_factor if first is None else len(first)
        configs = "".join(f", {one.name}={one.value}" for one in topic.configs)
        yield f"create topic {topic.name}: partitions {partitions}, replication factor {factor}{configs}"


def _growth(request: CreatePartitionsRequest, facts: _Facts) -> Iterator[str]:
    for topic in request.topics:
        was = _values(facts, f"topic {topic.name}").get("partitions")
        yield f"grow topic {topic.name} from {was} to {topic.count} partitions"


def _deletion(request: DeleteTopicsRequest, facts: _Facts) -> Iterator[str]:
    for topic_id in request.topic_ids:
        fact = _values(facts, f"topic id {uuid_text(topic_id)}")
        count = fact.get("partitions")
        yield f"delete topic {fact.get('name')} with its {count} partition{'' if count == 1 else 's'}, for good"


def _moves(request: AlterPartitionReassignmentsRequest, facts: _Facts) -> Iterator[str]:
    for topic in request.topics:
        for one in topic.partitions:
            name = f"{topic.name}-{one.partition_index}"
            fact = _values(facts, f"partition {name}")
            if one.replicas is None:
                yield f"cancel the reassignment of {name}"
            else:
                places = f"from {shown(fact.get('replicas'))} to {shown(one.replicas)}"
                yield f"move {name} {places}"


def _down(brokers: list[int], facts: _Facts) -> list[tuple[int, FactValue]]:
    """Those that are not active, with their states."""
    states = [(broker, _values(facts, f"broker {broker}").get("state")) for broker in brokers]
    return [(broker, state) for broker, state in states if state not in ("active", None)]


def _elections(request: ElectLeadersRequest, facts: _Facts) -> Iterator[str]:
    how = "the preferred leader of" if request.election_type == "PREFERRED" else "a leader that may lack records for"
    for topic in request.topic_partitions or ():
        for number in topic.partitions:
            leader = _values(facts, f"partition {topic.topic}-{number}").get("leader")
            yield f"elect {how} {topic.topic}-{number} (led by {'nobody' if leader is None else leader})"


def _config_changes(request: IncrementalAlterConfigsRequest, facts: _Facts) -> Iterator[str]:
    for resource in request.resources:
        present = _values(facts, f"configs of {resource_text(resource)}")
        said = [
            f"{one.config_operation.lower()} {one.name}"
            + ("" if one.config_operation == "DELETE" else f"={_value(resource, one.name, one.value)}")
            + f" (was {shown(present.get(one.name))})"
            for one in resource.configs
        ]
        yield f"{resource_text(resource)}: {', '.join(said)}"


def _config_replacement(request: AlterConfigsRequest, facts: _Facts) -> Iterator[str]:
    for resource in request.resources:
        present = _values(facts, f"configs of {resource_text(resource)}")
        said = [
            f"{one.name}={_value(resource, one.name, one.value)} (was {shown(present.get(one.name))})"
            for one in resource.configs
        ]
        gone = [name for name in present if name not in {one.name for one in resource.configs}]
        more = f", and no longer {', '.join(gone)}" if gone else ""
        yield f"{resource_text(resource)}: {', '.join(said) or 'nothing'}{more}"


def _value(resource: ResourceName, name: str, value: str | None) -> str:
    from quorate.controller.configs.resources import RESOURCE_TYPES, is_sensitive

    return "(hidden)" if is_sensitive(RESOURCE_TYPES[resource.resource_type], name) else shown(value)


def _unregistration(request: UnregisterBrokerRequest, facts: _Facts) -> Iterator[str]:
    fact = _values(facts, f"broker {request.broker_id}")
    held = f"{fact.get('replicas', 0)} partitions have a replica on it"
    yield f"unregister broker {request.broker_id}: it is {fact.get('state')}, and {held}"


def _labels(request: AlterLabelsRequest, facts: _Facts) -> Iterator[str]:
    said = []
    for one in request.changes:
        was = _values(facts, f"label {one.key} of {one.resource}").get("value")
        verb = f"remove {one.key} of" if one.value is None else f"set {one.key} to {one.value!r} on"
        said.append(f"{verb} {one.resource} (was {shown(was)})")
    yield ", ".join(said)


def _features(request: UpdateFeaturesRequest, facts: _Facts) -> Iterator[str]:
    levels = [
        f"{one.feature} from {_values(facts, f'feature {one.feature}').get('level')} to {one.max_version_level}"
        for one in request.feature_updates
    ]
    yield f"take {', '.join(levels)}"


def _new_acls(request: CreateAclsRequest, facts: _Facts) -> Iterator[str]:
    yield from (f"add ACL {acl_line(one)}" for one in request.creations)


def _removed_acls(request: DeleteAclsRequest, facts: _Facts) -> Iterator[str]:
    for wanted in request.filters:
        yield f"remove ACLs: {', '.join(_values(facts, f'ACLs that are {filter_text(wanted)}')) or 'none'}"


def _quotas(request: AlterClientQuotasRequest, facts: _Facts) -> Iterator[str]:
    for entry in request.entries:
        present = _values(facts, f"quotas of {entity_text(entry.entity)}")
        said = [
            f"{op.key} {'removed' if op.remove else f'{op.value:.15g}'} (was {shown(present.get(op.key))})"
            for op in entry.ops
        ]
        yield f"quotas of {entity_text(entry.entity)}: {', '.join(said)}"


def _credentials(request: AlterUserScramCredentialsRequest, facts: _Facts) -> Iterator[str]:
    yield from (f"remove the {one.mechanism} credential of {one.name}" for one in request.deletions)
    yield from (f"set the {one.mechanism} credential of {one.name}" for one in request.upsertions)


_WORDS: Final[Mapping[str, Callable[[Any, _Facts], Iterator[str]]]] = {
    "create_topics": _creation,
    "create_partitions": _growth,
    "delete_topics": _deletion,
    "alter_partition_reassignments": _moves,
    "elect_leaders": _elections,
    "incremental_alter_configs": _config_changes,
    "alter_configs": _config_replacement,
    "unregister_broker": _unregistration,
    "alter_labels": _labels,
    "update_features": _features,
    "create_acls": _new_acls,
    "delete_acls": _removed_acls,
    "alter_client_quotas": _quotas,
    "alter_user_scram_credentials": _credentials,
}
