"""The store of docs/sharded-kv.md on real processes that are killed, stopped and moved under load.

What clients were told is compared with what clients are told afterwards, and with the files of the workers. Ten seeds:
``PYTHONPATH=. python -m tests.integration.embedded.kv_trial --seeds 10``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final

from examples.sharded_kv.client import KvClient, connect
from quorate.client import (
    AlterPartitionReassignmentsRequest,
    ApiError,
    CreatableTopic,
    CreateTopicsRequest,
    ErrorCode,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaAssignment,
    checked,
)
from quorate.publishers import Partition
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.process import ManagedProcess
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

ROOT: Final = Path(__file__).parents[3]
TOPIC: Final = "kv"
#: The replicas of each shard at first.
SHARDS: Final = ((1, 2), (2, 3), (3, 1), (1, 3))
KEYS: Final = tuple(f"key-{at}" for at in range(16))
SESSION_MS: Final = 2_000
#: What a worker is started with.
PROGRAM: Final = ("-m", "examples.sharded_kv")
REFUSED: Final = 409
#: Acknowledged writes that show that the store goes on.
_PROGRESS: Final = 20
#: For how long a follower is stopped that is to stay in the ISR: less than LAG_S of the store, and than a session.
_BEHIND_S: Final = 1.0


class Lost(AssertionError):
    """A promise of the store was broken."""


class Trial:
    """One run."""

    def __init__(self, cluster: LocalCluster, home: Path, seed: int, program: tuple[str, ...]) -> None:
        self.cluster = cluster
        self.rng = Random(seed)
        self.home = home
        #: By key: the last number that was tried, and the last that was acknowledged. A key has one writer.
        self.tried = dict.fromkeys(KEYS, 0)
        self.acknowledged = dict.fromkeys(KEYS, 0)
        self.reads = 0
        #: Reads that a leader which had been stopped did not answer.
        self.refused = 0
        self.done: Counter[str] = Counter()
        self.client: KvClient
        self._urls = list(cluster.client.urls)
        self.workers = {
            id_: ManagedProcess(
                f"worker-{id_}",
                (*program, str(id_), str(self.directory(id_)), ",".join(self._urls)),
                home / f"worker-{id_}.log",
                {"PYTHONPATH": str(ROOT)},
            )
            for id_ in (1, 2, 3)
        }

    def directory(self, worker: int) -> Path:
        return self.home / f"worker-{worker}"

    async def run(self, rounds: tuple[str, ...]) -> None:
        """Do what the rounds say under load, and check."""
        faults = {
            "worker": self._kill_worker,
            "behind": self._kill_leader_of_one_behind,
            "controller": self._kill_controller,
            "leave": self._stop_worker,
            "freeze": self._freeze_leader,
            "move": self._move,
        }
        for worker in self.workers.values():
            await worker.start()
        await eventually(self._is_created, "the topic is there", 30)
        async with connect(self._urls, TOPIC) as self.client, asyncio.TaskGroup() as load:
            tasks = [load.create_task(self._write(KEYS[at::4])) for at in range(4)]
            tasks += [load.create_task(self._read(Random(at))) for at in range(2)]
            await self._goes_on()
            for fault in rounds:
                await faults[fault]()
                self.done[fault] += 1
                await self._goes_on()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            async with asyncio.timeout(30):
                for key in KEYS:
                    self._check(key, await self.client.get(key), self.acknowledged[key], "after recovery")
            in_sync = [state.isr for _, state in self._shards()]
        for worker in self.workers.values():
            await worker.stop(20)
        for shard, members in enumerate(in_sync):
            self._check_files(shard, members)

    def __str__(self) -> str:
        done = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        total = sum(self.acknowledged.values())
        read = f"{self.reads} reads, none stale, {self.refused} refused by leaders that had been stopped"
        return f"{total} writes acknowledged, none lost; {read}; faults: {done}"

    # --- load ----------------------------------------------------------------------------------------

    async def _write(self, keys: tuple[str, ...]) -> None:
        number = 0
        while True:
            number += 1
            for key in keys:
                self.tried[key] = number
                await self.client.put(key, str(number))
                self.acknowledged[key] = number

    async def _read(self, rng: Random) -> None:
        while True:
            key = rng.choice(KEYS)
            least = self.acknowledged[key]
            self._check(key, await self.client.get(key), least, "read")
            self.reads += 1

    def _check(self, key: str, value: str | None, least: int, what: str) -> None:
        """A read must show all that was acknowledged when it began, and nothing that nobody wrote."""
        if not least <= int(value or 0) <= self.tried[key]:
            raise Lost(f"{what}: {key} is {value}; {least} was acknowledged, {self.tried[key]} tried")

    async def _goes_on(self) -> None:
        """All replicas are in sync, and all shards acknowledge again."""
        before = dict(self.acknowledged)

        async def look() -> bool:
            is_full = all(set(state.isr) == set(state.replicas) for _, state in self._shards())
            return is_full and all(self.acknowledged[key] > before[key] for key in KEYS)

        await eventually(look, f"the store goes on after {dict(self.done)}", 60)

    # --- faults --------------------------------------------------------------------------------------

    async def _kill_worker(self) -> None:
        worker = self.workers[self.rng.choice((1, 2, 3))]
        worker.kill()
        await worker.wait(10)
        await self._acknowledged_more(self.rng.randint(0, _PROGRESS))
        await worker.start()

    async def _kill_leader_of_one_behind(self) -> None:
        """Stop a follower for less than it may be silent, and kill its leader: who is elected has what it had then."""
        shard, state = self.rng.choice(list(self._shards()))
        leader = self.workers[state.leader]
        (follower,) = (self.workers[one] for one in state.isr if one != state.leader)
        keys = [key for key in KEYS if self.client.shard_of(key) == shard]
        before = dict(self.acknowledged)
        follower.pause()
        try:
            # A store that waits for all who may be elected acknowledges nothing meanwhile.
            with suppress(AssertionError):
                more = lambda: any(self.acknowledged[key] > before[key] + 1 for key in keys)  # noqa: E731 - one line
                await eventually(lambda: _holds(more), "more writes", _BEHIND_S)
            leader.kill()
        finally:
            follower.resume()
        await leader.wait(10)
        await leader.start()

    async def _stop_worker(self) -> None:
        worker = self.workers[self.rng.choice((1, 2, 3))]
        await worker.stop(20)
        await worker.start()

    async def _kill_controller(self) -> None:
        active = (await self.cluster.client.describe_quorum()).active_id
        process = next(one for one in self.cluster.processes if one.name == f"controller-{active}")
        process.kill()
        await process.wait(10)
        await self._acknowledged_more(_PROGRESS)
        await process.start()

    async def _freeze_leader(self) -> None:
        """Stop a leader until others lead in its place and have acknowledged more; let it answer what waits for it."""
        shard, state = self.rng.choice(list(self._shards()))
        url, frozen = self.client.url_of(shard), self.workers[state.leader]
        assert url is not None
        frozen.pause()
        try:
            await eventually(lambda: self._leads_another(shard, state.leader), "another one leads", 30)
            keys = [key for key in KEYS if self.client.shard_of(key) == shard]
            before = dict(self.acknowledged)
            newer = lambda: all(self.acknowledged[key] > before[key] + 1 for key in keys)  # noqa: E731 - one line
            await eventually(lambda: _holds(newer), "newer writes", 60)
            least = {key: self.acknowledged[key] for key in keys}
            waiting = [(key, await _ask_in_vain(url, f"{TOPIC}-{shard}", key)) for key in keys]
            frozen.resume()
            answers = [(key, *await answer()) for key, answer in waiting]
            for key, status, value in answers:
                self.refused += status == REFUSED
                if status != REFUSED:
                    self._check(key, value, least[key], "read from a leader that was stopped")
        finally:
            frozen.resume()

    async def _move(self) -> None:
        """Another worker takes the place of one replica of a shard."""
        shard, state = self.rng.choice(list(self._shards()))
        (new,) = {1, 2, 3} - set(state.replicas)
        replicas = [new, self.rng.choice(state.replicas)]
        partition = ReassignablePartition(partition_index=shard, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=TOPIC, partitions=[partition])])
        checked(await self.cluster.client.alter_partition_reassignments(request))
        moved = set(replicas)
        await eventually(lambda: _holds(lambda: set(dict(self._shards())[shard].replicas) == moved), "it has moved", 30)

    # --- looks ---------------------------------------------------------------------------------------

    def _shards(self) -> list[tuple[int, Partition]]:
        image = self.client.watcher.image
        return list(image.partitions.partitions_of(image.topics.by_name[TOPIC].id))

    async def _leads_another(self, shard: int, than: int) -> bool:
        return dict(self._shards())[shard].leader not in (-1, than)

    async def _acknowledged_more(self, count: int) -> None:
        before = sum(self.acknowledged.values())
        await eventually(lambda: _holds(lambda: sum(self.acknowledged.values()) >= before + count), "more writes", 30)

    async def _is_created(self) -> bool:
        partitions = [ReplicaAssignment(partition_index=at, broker_ids=list(ids)) for at, ids in enumerate(SHARDS)]
        request = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, assignments=partitions)])
        try:
            (made,) = (await self.cluster.client.create_topics(request)).topics
        except ApiError:  # the workers are not registered yet
            return False
        return made.error_code is ErrorCode.NONE

    def _check_files(self, shard: int, members: tuple[int, ...]) -> None:
        """What every member of the ISR has on its disk."""
        logs = []
        for worker in members:
            with sqlite3.connect(self.directory(worker) / "shards.sqlite") as database:
                query = "SELECT at, epoch, key, value FROM entries WHERE shard = ? ORDER BY at"
                rows = database.execute(query, (f"{TOPIC}-{shard}",)).fetchall()
            assert [row[0] for row in rows] == list(range(len(rows))), "a log without gaps"
            written = {(key, int(value)) for _, _, key, value in rows}
            for key in KEYS:
                if self.client.shard_of(key) == shard:
                    # Its one writer counts, and goes on when a number is acknowledged: all of them must be there.
                    missing = {(key, number) for number in range(1, self.acknowledged[key] + 1)} - written
                    if missing:
                        raise Lost(f"worker {worker} lacks {min(missing)}, which was acknowledged")
            logs.append(rows)
        shortest = min(len(rows) for rows in logs)
        if any(rows[:shortest] != logs[0][:shortest] for rows in logs):
            raise Lost(f"the logs of shard {shard} differ on the workers {members}")


async def _ask_in_vain(url: str, shard: str, key: str) -> Callable[[], Awaitable[tuple[int, str | None]]]:
    """Put a read into the socket of a process that is stopped. Gives what waits for its answer: status and value."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"shard": shard, "key": key})
    head = f"POST /get HTTP/1.1\r\nHost: kv\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    await writer.drain()

    async def answer() -> tuple[int, str | None]:
        try:
            async with asyncio.timeout(10):
                begin, _, content = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        return int(begin.split()[1]), json.loads(content).get("value")

    return answer


async def _holds(condition: Callable[[], bool]) -> bool:
    return condition()


@asynccontextmanager
async def trial(
    home: Path, seed: int, program: tuple[str, ...] = ("-m", "examples.sharded_kv")
) -> AsyncIterator[Trial]:
    """Three controllers; the workers are started by ``run`` and killed at the end if they are still there."""
    options = LocalOptions(controller={"BROKERS__SESSION_TIMEOUT_MS": str(SESSION_MS)})
    async with running_cluster(home / "cluster", 3, 0, options, is_secured=False) as cluster:
        made = Trial(cluster, home, seed, program)
        try:
            yield made
        finally:
            for worker in made.workers.values():
                worker.kill()
                await worker.wait(10)


def rounds_of(seed: int) -> tuple[str, ...]:
    """Every fault once, in an order of the seed's."""
    rounds = ["worker", "controller", "freeze", "move", "leave", "behind", "worker"]
    Random(seed).shuffle(rounds)
    return tuple(rounds)


async def main(seeds: int, first: int) -> None:
    for seed in range(first, first + seeds):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="quorate-kv-") as home:
            async with trial(Path(home), seed) as made:
                await made.run(rounds_of(seed))
        print(f"seed {seed}: {made}; {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many runs (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed (default: 0)")
    arguments = parser.parse_args()
    try:
        asyncio.run(main(arguments.seeds, arguments.seed))
    except KeyboardInterrupt:
        sys.exit(130)
