"""Operations of scenarios about topics and partitions; as ``cluster_requests``."""

from __future__ import annotations

from typing import Any

from quorate.controller.partitions.elections import decide_balance_leaders, decide_elect_unclean_leaders
from quorate.controller.protocol import (
    AlterPartitionData,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionTopic,
    AssignReplicasToDirsRequest,
    BrokerState,
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DirectoryReplicas,
    ElectionPartitions,
    ElectLeadersRequest,
    ItemResult,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaAssignment,
    ReplicaInDirectory,
    TopicConfig,
    TopicInDirectory,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.conformance_runner.kinds.cluster_requests import TIMEOUT_MS
from quorate.scripts.conformance_runner.kinds.stage import ScenarioStage
from quorate.scripts.conformance_runner.record_form import RECOVERY_STATES, Form

#: First version of AlterPartition whose ISR members come with their epochs.
_EPOCHS_API_VERSION = 3
_UNSAID_EPOCH = -1


def result_form(result: ItemResult) -> Form:
    """The error of one thing that a request names."""
    return {"error": result.error_code.name}


async def create_topics(stage: ScenarioStage, op: Form) -> Form:
    """By name. Its id has no name before the topic is in the log, so that is left to the caller."""
    topics = [
        CreatableTopic(
            name=topic["name"],
            num_partitions=topic["num_partitions"],
            replication_factor=topic["replication_factor"],
            assignments=[
                ReplicaAssignment(partition_index=given["partition"], broker_ids=given["replicas"])
                for given in topic["assignments"]
            ],
            configs=[TopicConfig(name=name, value=value) for name, value in topic["configs"].items()],
        )
        for topic in op["topics"]
    ]
    request = CreateTopicsRequest(topics=topics, validate_only=op["validate_only"])
    results = (await stage.operations.create_topics(request, TIMEOUT_MS)).topics
    return {
        result.name: result_form(result)
        if result.error_code
        else {
            "error": ErrorCode.NONE.name,
            "topic_id": result.topic_id,
            "num_partitions": result.num_partitions,
            "replication_factor": result.replication_factor,
        }
        for result in results
    }


async def create_partitions(stage: ScenarioStage, op: Form) -> Form:
    """By name."""
    topics = [CreatePartitionsTopic(**topic) for topic in op["topics"]]
    request = CreatePartitionsRequest(topics=topics, validate_only=op["validate_only"])
    results = (await stage.operations.create_partitions(request, TIMEOUT_MS)).results
    return {result.name: result_form(result) for result in results}


async def delete_topics(stage: ScenarioStage, op: Form) -> Form:
    """An error per id."""
    request = DeleteTopicsRequest(topic_ids=[stage.names.topic_id(name) for name in op["topic_ids"]])
    results = (await stage.operations.delete_topics(request, TIMEOUT_MS)).responses
    return {stage.names.name(result.topic_id): result.error_code.name for result in results}


async def alter_partition(stage: ScenarioStage, op: Form) -> Form:
    """In the order of the request."""
    has_epochs = op["api_version"] >= _EPOCHS_API_VERSION

    def data(asked: Form) -> AlterPartitionData:
        return AlterPartitionData(
            partition_index=asked["partition"],
            leader_epoch=asked["leader_epoch"],
            partition_epoch=asked["partition_epoch"],
            leader_recovery_state=RECOVERY_STATES.index(asked["leader_recovery_state"]),
            new_isr_with_epochs=[
                BrokerState(broker_id=broker, broker_epoch=epoch if has_epochs else _UNSAID_EPOCH)
                for broker, epoch in asked["new_isr"]
            ],
        )

    topics = [
        AlterPartitionTopic(
            topic_id=stage.names.topic_id(topic["topic_id"]), partitions=[data(asked) for asked in topic["partitions"]]
        )
        for topic in op["topics"]
    ]
    request = AlterPartitionRequest(broker_id=op["broker"], broker_epoch=op["broker_epoch"], topics=topics)
    reply = await stage.operations.alter_partition(request, TIMEOUT_MS)
    partitions = []
    for topic in reply.topics:
        for partition in topic.partitions:
            form = {
                "topic_id": stage.names.name(topic.topic_id),
                "partition": partition.partition_index,
                "error": partition.error_code.name,
            }
            if not partition.error_code:
                form |= {
                    "leader": partition.leader_id,
                    "leader_epoch": partition.leader_epoch,
                    "isr": partition.isr,
                    "leader_recovery_state": RECOVERY_STATES[partition.leader_recovery_state],
                    "partition_epoch": partition.partition_epoch,
                }
            partitions.append(form)
    return {"error": ErrorCode.NONE.name, "partitions": partitions}


async def alter_partition_reassignments(stage: ScenarioStage, op: Form) -> Form:
    """In the order of the request."""
    topics = [
        ReassignableTopic(
            name=topic["name"],
            partitions=[
                ReassignablePartition(partition_index=asked["partition"], replicas=asked["replicas"])
                for asked in topic["partitions"]
            ],
        )
        for topic in op["topics"]
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=topics, allow_replication_factor_change=op["allow_replication_factor_change"]
    )
    reply = await stage.operations.alter_partition_reassignments(request, TIMEOUT_MS)
    partitions = [
        {"topic": topic.name, "partition": result.partition_index, **result_form(result)}
        for topic in reply.responses
        for result in topic.partitions
    ]
    return {"error": ErrorCode.NONE.name, "partitions": partitions}


async def assign_replicas_to_dirs(stage: ScenarioStage, op: Form) -> Form:
    """In the order of the request."""
    directories = [
        DirectoryReplicas(
            id=stage.names.id(directory["directory"]),
            topics=[
                TopicInDirectory(
                    topic_id=stage.names.topic_id(topic["topic_id"]),
                    partitions=[ReplicaInDirectory(partition_index=number) for number in topic["partitions"]],
                )
                for topic in directory["topics"]
            ],
        )
        for directory in op["directories"]
    ]
    request = AssignReplicasToDirsRequest(
        broker_id=op["broker"], broker_epoch=op["broker_epoch"], directories=directories
    )
    reply = await stage.operations.assign_replicas_to_dirs(request, TIMEOUT_MS)
    partitions = [
        {
            "directory": stage.names.name(directory.id),
            "topic_id": stage.names.name(topic.topic_id),
            "partition": partition.partition_index,
            "error": partition.error_code.name,
        }
        for directory in reply.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]
    return {"error": ErrorCode.NONE.name, "partitions": partitions}


async def elect_leaders(stage: ScenarioStage, op: Form) -> Form:
    """Sorted."""
    asked: dict[str, list[int]] | None = None
    if op["partitions"] is not None:
        asked = {}
        for partition in op["partitions"]:
            asked.setdefault(partition["topic"], []).append(partition["partition"])
    wanted = asked and [ElectionPartitions(topic=name, partitions=numbers) for name, numbers in asked.items()]
    request = ElectLeadersRequest(
        election_type=op["election_type"], topic_partitions=None if asked is None else wanted or []
    )
    reply = await stage.operations.elect_leaders(request, TIMEOUT_MS)
    results = [
        {"topic": topic.topic, "partition": result.partition_id, **result_form(result)}
        for topic in reply.replica_election_results
        for result in topic.partition_results
    ]
    results.sort(key=lambda result: (result["topic"], result["partition"]))
    return {"error": ErrorCode.NONE.name, "partitions": results}


async def balance_leaders(stage: ScenarioStage, _: Form) -> Any:
    """Whether there may be more to do."""
    next_row = await stage.controller.append_write_event(
        "balance_leaders", lambda c: decide_balance_leaders(c.image, stage.config), TIMEOUT_MS
    )
    return next_row is not None


async def elect_unclean_leaders(stage: ScenarioStage, _: Form) -> Any:
    """Whether there may be more to do."""
    next_row = await stage.controller.append_write_event(
        "elect_unclean_leaders", lambda c: decide_elect_unclean_leaders(c.image, stage.config), TIMEOUT_MS
    )
    return next_row is not None
