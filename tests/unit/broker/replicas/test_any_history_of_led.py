"""After any history a book knows, and asks for, what a naive model does that looks at every partition every time."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from math import inf

import numpy as np
import pytest

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.replicas import isr_book
from quorate.broker.replicas.isr_book import AS_BEFORE, CONFIRM_MS, RETRY_MS, IsrBook
from quorate.broker.replicas.led_rows import FollowerGroup
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import DIRECTORY_MIGRATING
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord, Record, RemoveTopicRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS
from quorate.snapshots.table.partition import Partition
from tests.unit.broker.images import cluster_image, fencing, partition, registration, replayed, uuid
from tests.unit.broker.replicas.naive_book import Key, NaiveBook, restarted

BROKERS = tuple(range(1, 10))  # masks over nine slots do not fit in a byte
NUMBERS = (0, 1, 2, 3, PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS, 2 * PAGE_ROWS + 5)
OUTSIDE = uuid(7_000)
LAG_MAX_MS = 500.0
STEPS = 25


class History:
    """A book, its model, and what both are told."""

    def __init__(self, seed: int, *, trusts_isr: bool) -> None:
        self.draw = random.Random(seed)
        #: Little happens at a time: what was left for later is not looked at anew because of something else.
        self.is_quiet = seed % 2 > 0
        self.book = IsrBook(LAG_MAX_MS, trusts_isr=trusts_isr)
        self.model = NaiveBook(LAG_MAX_MS, trusts_isr=trusts_isr)
        self.now_ms = 0.0
        self.played = frozenset(self.draw.sample(BROKERS[:4], 2))
        self.out: list[IsrProposals] = []
        first = [self.new(topic, number) for topic in (0, 1) for number in self.draw.sample(NUMBERS, 6)]
        self.images = [cluster_image(BROKERS, first)]
        self.show(self.images[-1])

    # --- images --------------------------------------------------------------------------------------

    def new(self, topic: int, number: int) -> PartitionRecord:
        replicas = self.draw.sample(BROKERS, 9 if self.draw.random() < 0.05 else 3)
        return partition(topic, number, replicas, isr=replicas[: self.draw.randrange(1, 4)])

    def show(self, image: MetadataImage) -> None:
        before = self.model.image
        self.book.update(image, self.played, self.now_ms)
        self.model.update(image, self.played, self.now_ms)
        for broker in restarted(before, image):
            self.leave(broker)

    def image(self) -> None:
        if not self.is_quiet and self.draw.random() < 0.1:
            self.show(self.draw.choice(self.images))  # another controller is followed, which is behind
            return
        self.images.append(replayed(self.images[-1], *self.records()))
        self.show(self.images[-1])

    def records(self) -> list[Record]:
        """Some changes of one kind, after which the image is sound."""
        draw, image = self.draw, self.images[-1]
        parts = list(parts_of(image))
        broker = draw.choice(BROKERS)
        epoch = image.cluster.brokers[broker].epoch
        kinds = ["moved", "moved", "isr", "isr"]
        if not self.is_quiet:
            kinds += ["mass", "replicas", "directories", "grown", "fence", "new"]
        kind = draw.choice(kinds)
        if kind == "fence":
            return [fencing(broker, epoch, fenced=draw.random() < 0.5)]
        if kind == "new" and draw.random() < 0.5:
            return [registration(broker, epoch + 1, incarnation=epoch)]
        if kind == "new" and len(image.topics.by_id) > 1 and draw.random() < 0.2:
            return [RemoveTopicRecord(topic_id=parts[0][0][0])]
        if kind in ("grown", "new"):
            topic = draw.choice(sorted(image.topics.by_id))
            left = set(NUMBERS).difference(number for (of, number), _ in parts if of == topic)
            numbers = draw.sample(sorted(left), min(2, len(left)))
            return [self.new(int.from_bytes(topic, "big") - 1_000, number) for number in numbers]
        if kind == "mass":
            chosen = [(key, state) for key, state in parts if state.leader == broker]
        else:
            chosen = draw.sample(parts, min(1 if self.is_quiet else 4, len(parts)))
        return [self.changed(kind, *key, state) for key, state in chosen]

    def changed(self, kind: str, topic: bytes, number: int, state: Partition) -> PartitionChangeRecord:
        draw, isr = self.draw, list(state.isr)
        if kind in ("moved", "mass"):
            return PartitionChangeRecord(partition_id=number, topic_id=topic, leader=draw.choice([*isr, *isr, -1]))
        if kind == "isr":
            some = draw.sample(state.replicas, draw.randrange(1, len(state.replicas) + 1))
            members = tuple({*some, state.leader} - {-1})
            return PartitionChangeRecord(partition_id=number, topic_id=topic, isr=members)
        if kind == "directories":
            places = tuple(draw.choice([uuid(500 + b), OUTSIDE, DIRECTORY_MIGRATING]) for b in state.replicas)
            return PartitionChangeRecord(partition_id=number, topic_id=topic, directories=places)
        others = draw.sample(BROKERS, draw.randrange(0, 3))
        replicas = tuple(dict.fromkeys([*draw.sample(isr, len(isr)), *others]))
        places = tuple(uuid(500 + b) for b in replicas)
        return PartitionChangeRecord(partition_id=number, topic_id=topic, replicas=replicas, directories=places)

    # --- what is said --------------------------------------------------------------------------------

    def note(self) -> None:
        draw = self.draw
        said: dict[tuple[Key, int], tuple[int, float, bool]] = {}
        for key, state in draw.choices(list(parts_of(self.model.image)), k=8):
            broker = draw.choice(state.replicas)
            epoch = max(0, state.leader_epoch + draw.choice([0, 0, 0, 0, 0, -1, 1]))
            told = draw.choice([AS_BEFORE, AS_BEFORE, inf, -inf, self.now_ms - draw.uniform(0, 2 * LAG_MAX_MS)])
            said[key, broker] = epoch, told, broker in self.model.groups and draw.random() < 0.6
        codes = self.book.note(
            np.frombuffer(b"".join(topic for (topic, _), _ in said), np.uint8).reshape(-1, 16),
            np.array([number for (_, number), _ in said], np.int32),
            np.array([epoch for epoch, _, _ in said.values()], np.int32),
            np.array([broker for _, broker in said], np.int32),
            np.array([told for _, told, _ in said.values()]),
            np.array([is_member for _, _, is_member in said.values()]),
        )
        assert codes.tolist() == [
            self.model.note(key, epoch, broker, told, is_member=is_member)
            for (key, broker), (epoch, told, is_member) in said.items()
        ]

    def hear(self) -> None:
        """A group says how far it is, as ``LeaderCore`` takes it."""
        broker = self.draw.choice(BROKERS)
        group = self.model.groups.setdefault(broker, self.book.groups.setdefault(broker, FollowerGroup()))
        limit_ms = self.now_ms - LAG_MAX_MS
        was_level = group.is_level and group.caught_up_ms >= limit_ms
        group.caught_up_ms = max(group.caught_up_ms, self.now_ms - self.draw.choice([0, 10, 200, 600]))
        group.is_level = self.draw.random() < 0.7
        if group.is_level and group.caught_up_ms >= limit_ms and not was_level:
            self.book.look_again()

    def leave(self, broker: int) -> None:
        if broker in self.model.groups:
            self.book.leave_group(broker)
            self.model.leave_group(broker)

    def answer(self) -> None:
        """One request is answered or fails."""
        if not self.out:
            return
        draw = self.draw
        proposals = self.out.pop(draw.randrange(len(self.out)))
        waits = {
            ErrorCode.NONE: CONFIRM_MS,
            ErrorCode.INVALID_UPDATE_VERSION: RETRY_MS,
            ErrorCode.FENCED_LEADER_EPOCH: inf,
        }
        codes = draw.choices(list(waits), k=len(proposals))
        if draw.random() < 0.3:
            self.book.postponed(proposals, self.now_ms + 50)
            holds = [self.now_ms + 50] * len(codes)
        else:
            self.book.answered(proposals, np.array(codes, np.int16), self.now_ms)
            holds = [self.now_ms + waits[code] for code in codes]
        epochs = proposals.partition_epochs.tolist()
        for key, epoch, hold_ms in zip(keys_of(proposals), epochs, holds, strict=True):
            row = self.model.rows.get(key)
            if row is not None and row.state.partition_epoch == epoch:
                row.hold_ms = hold_ms

    # --- what comes of it ----------------------------------------------------------------------------

    def check_known(self) -> None:
        found = {}
        for number, led in self.book._led.pages.items():
            page = self.model.image.partitions.pages[number]
            assert led.page is page
            for at, row in enumerate(led.rows.tolist()):
                key = page.topic_ids[row].tobytes(), int(page.partition_ids[row])
                state = self.model.rows[key].state
                columns = zip(led.caught_up_ms[:, at].tolist(), led.is_member[:, at].tolist(), strict=True)
                known = dict(zip(state.replicas, columns, strict=False))  # replicas stand in the first slots, in order
                del known[state.leader]
                found[key] = known, float(led.hold_ms[at])
        expected = {}
        for key, of in self.model.rows.items():
            followers = {b: (one.caught_up_ms, one.is_member) for b, one in of.known.items() if b != of.state.leader}
            expected[key] = followers, of.hold_ms
        assert found == expected
        states = [row.state for row in self.model.rows.values()]
        assert self.book.outside_count == sum(len(state.replicas) - len(state.isr) for state in states)

    def ask(self, busy: Collection[int], rows_max: int) -> bool:
        """Let leaders ask; what they ask for is what the model wants. Returns whether any did."""
        asked = list(self.book.due(self.now_ms, busy, rows_max))
        self.out += asked
        for proposals in asked:
            assert proposals.leader not in busy
            assert len(proposals) <= rows_max
            for key, isr in zip(keys_of(proposals), proposals.isr.tolist(), strict=True):
                row = self.model.rows[key]
                wanted = self.model.wanted(row, self.now_ms)
                assert row.hold_ms <= self.now_ms
                assert row.state.leader == proposals.leader
                assert set(isr) - {NO_MEMBER} == wanted != set(row.state.isr)
                row.hold_ms = inf
        return bool(asked)

    def check_nobody_is_forgotten(self) -> None:
        """After all that is due was asked for, nothing is but what waits for its leader; the rest comes in time."""
        has_expired = self.draw.random() < 0.5
        if has_expired:
            self.book.expire(self.now_ms)
        busy = frozenset(broker for broker in self.played if self.draw.random() < 0.3)
        rows_max = self.draw.choice([1, 3, 100])
        while self.ask(busy, rows_max) or self.book.next_due_after(self.now_ms) == self.now_ms:
            pass
        for key, row in self.model.rows.items():
            wanted, members = self.model.wanted(row, self.now_ms), set(row.state.isr)
            if wanted - members or (has_expired and wanted != members):
                assert row.hold_ms > self.now_ms or row.state.leader in busy, key
                if row.hold_ms > self.now_ms and not self.played <= busy:
                    assert self.book.next_due_after(self.now_ms) <= row.hold_ms, key

    def step(self) -> None:
        tell = [self.image, self.image, self.note, self.note, self.note, self.answer, self.answer, self.hear]
        if not self.is_quiet:
            tell += [self.hear, self.play, lambda: self.leave(self.draw.choice(BROKERS))]
        self.draw.choice(tell)()
        self.check_known()
        what = self.draw.random()
        if what < 0.3:
            self.check_nobody_is_forgotten()
        elif what < 0.7:
            self.ask(
                frozenset(self.draw.sample(sorted(self.played), len(self.played) // 2)), self.draw.choice([1, 100])
            )
        self.now_ms += self.draw.choice([0, 5, 10, 60, 250, 600])

    def play(self) -> None:
        """Other brokers are played here."""
        self.played = frozenset(self.draw.sample(BROKERS[:4], self.draw.randrange(4)))
        self.show(self.model.image)


def keys_of(proposals: IsrProposals) -> list[Key]:
    topics = (topic.tobytes() for topic in proposals.topic_ids)
    return list(zip(topics, proposals.partition_ids.tolist(), strict=True))


def parts_of(image: MetadataImage) -> Iterator[tuple[Key, Partition]]:
    for topic in image.topics.by_id:
        for number, state in image.partitions.partitions_of(topic):
            yield (topic, number), state


@pytest.mark.parametrize("trusts_isr", [True, False])
@pytest.mark.parametrize("pages_max", [1, 2, 16])
def test_any_history_book_knows_and_asks_for_what_a_naive_model_does(
    trusts_isr: bool, pages_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_book, "PAGES_JOINED_MAX", pages_max)
    monkeypatch.setattr(isr_book, "PAGES_PER_LOOK_MAX", pages_max)
    for seed in range(10):
        history = History(100 * pages_max + seed, trusts_isr=trusts_isr)
        for step in range(STEPS):
            try:
                history.step()
            except Exception as error:
                error.add_note(f"in step {step} of the history of seed {100 * pages_max + seed}")
                raise
