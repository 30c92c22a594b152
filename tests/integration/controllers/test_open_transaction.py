"""Real processes whose leader died in the middle of a metadata transaction: nothing of it is ever seen."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.batches.batch import data_batch, iter_records, place_batch
from quorate.metadata_log.directory.reader import FileBatch, LogFile, find_files, iter_batches
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    PartitionRecord,
    Record,
    TopicRecord,
)
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, controller_directory, make_fresh
from quorate.scripts.cluster.plan import PlannedController
from quorate.scripts.cluster.ports import free_ports

READY_S = 60.0
GHOST = bytes(range(16))
#: Of a transaction of some batches the first two: it takes a topic's creation apart.
CUT: tuple[list[Record], ...] = (
    [BeginTransactionRecord("mass change"), TopicRecord("ghost", GHOST)],
    [PartitionRecord(0, GHOST, (1, 2), (1, 2), leader=1)],
)


def batches(directory: Path, planned: PlannedController) -> list[tuple[LogFile, FileBatch]]:
    """What a controller has in its log, batch by batch."""
    files = find_files(controller_directory(directory, planned))
    return [(file, batch) for file in files if file.path.suffix == ".log" for batch in iter_batches(file)]


def append_cut_transaction(directory: Path, planned: PlannedController) -> int:
    """What a leader's last appends left on a disk; the offset at which they begin."""
    file, last = batches(directory, planned)[-1]
    begin = end = last.header.end_offset
    with file.path.open("ab") as log:
        for records in CUT:
            version = 2 if isinstance(records[0], PartitionRecord) else 0
            batch = data_batch([(record, version) for record in records], last.header.timestamp)
            log.write(place_batch(batch, end, last.header.epoch))
            end += len(records)
    return begin


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, replication_factor=1) for name in names])


async def all_digests(cluster: LocalCluster) -> set[str] | None:
    """The different digests of all controllers and brokers at one offset; None while one has not applied so much."""
    offset = (await cluster.status()).quorum.high_watermark
    nodes = [*cluster.plan.controller_urls, *(f"127.0.0.1:{played.http_port}" for played in cluster.plan.brokers)]
    try:
        return {await cluster.client.digest_of(url, offset) for url in nodes}
    except QuorateError:
        return None


async def test_leader_killed_in_a_transaction_that_a_majority_holds(tmp_path: Path) -> None:
    """Two of three have the first batches of it on disk, so their successor has them too, commits and aborts them."""
    plan = make_fresh(tmp_path, Ports.of(free_ports(7)), 3, 1)
    # Quiet logs, so that all three end at the same offset when they are killed.
    cluster = LocalCluster(tmp_path, plan, LocalOptions({"MAINTENANCE__IDLE_NOOP_INTERVAL_MS": "0"}))
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        await cluster.wait_for_brokers(READY_S)
        await cluster.client.create_topics(topics("before"))

        async def are_level() -> bool | None:
            # Asked first: a registration that comes between the two is in the log that must be level.
            registered = all(one.is_registered for one in (await cluster.client.describe_controllers()).controllers)
            voters = (await cluster.status()).quorum.voters
            return (registered and len({voter.log_end_offset for voter in voters}) == 1) or None

        await cluster.until(are_level, "all have the same log", READY_S)
        active = (await cluster.status()).quorum.active_id
        assert active is not None
        # The leader last: a majority that is left without it elects another in tens of milliseconds, whose first entry
        # the others lack.
        for process in sorted(cluster.processes, key=lambda one: one is cluster.controllers[active]):
            process.kill()
        for process in cluster.processes:
            await process.wait(READY_S)
        begins = {append_cut_transaction(tmp_path, planned) for planned in plan.controllers[:2]}
        assert len(begins) == 1

        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        await cluster.wait_for_brokers(READY_S)
        await cluster.client.create_topics(topics("after"))
        assert await cluster.topic_names() == {"after", "before"}
        digests = await cluster.until(lambda: all_digests(cluster), "all nodes have applied the same log", READY_S)
        assert len(digests) == 1
    finally:
        await cluster.stop()
    (begin,) = begins
    for planned in plan.controllers:
        data = [batch for _, batch in batches(tmp_path, planned) if not batch.header.is_control]
        tail = [logged for batch in data for logged in iter_records(batch.data) if logged.offset >= begin]
        cut = [record for records in CUT for record in records]
        assert [logged.record for logged in tail[: len(cut)]] == cut, "the log keeps what was appended"
        assert tail[len(cut)].record == AbortTransactionRecord("Controller failover")
