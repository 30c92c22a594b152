"""Which rows are followed from here over which link, as images come, and what replicas hold, also idle ones."""

from __future__ import annotations

import numpy as np

from quorate.broker.replicas.followed_pages import FollowedChanges, FollowedPages, Leaders, LinkColumns
from quorate.broker.replicas.messages import EVERYTHING, NOTHING, FollowedRows
from quorate.broker.replicas.stand_in import Pace
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import change, cluster_image, partition, reloaded, replayed, uuid

#: Broker 1 is played here; 2 and 3 lead over links 0 and 1, and have a log of 1,000 bytes.
LEADERS = Leaders(np.array([2, 3], np.int32), np.array([0, 1], np.int32))
COLUMNS = LinkColumns(np.full(2, 900.0), np.ones(2, np.bool_), np.zeros(2), np.full(2, 1_000.0))
OWN_END = 555
DIRECTORY, OTHER = uuid(501), uuid(601)


def row_counts(pages: FollowedPages, image: MetadataImage) -> list[int]:
    """Of the links to brokers 2 and 3, after another image; broker 1 is played here."""
    pages.update(image, [1], LEADERS, COLUMNS, OWN_END, is_recast=False)
    return pages.row_counts(2)


def test_rows_of_links_are_counted_on_as_leaders_move_and_topics_go() -> None:
    numbers = [0, 1, PAGE_ROWS, 2 * PAGE_ROWS]
    pages = FollowedPages()
    image = cluster_image([1, 2, 3], [partition(0, n, [2, 3, 1]) for n in numbers])
    assert row_counts(pages, image) == [4, 0]

    image = replayed(image, change(0, 0, leader=3), change(0, PAGE_ROWS, leader=3))
    assert row_counts(pages, image) == [2, 2]
    image = replayed(image, change(0, 0, leader=1))
    assert row_counts(pages, image) == [2, 1], "what is led here follows nobody"
    image = replayed(image, change(0, 1, isr=[2, 1]))
    assert row_counts(pages, image) == [2, 1]
    assert row_counts(pages, replayed(image, RemoveTopicRecord(topic_id=uuid(0)))) == [0, 0]


class Followed:
    """Of one partition, the only one there is."""

    def __init__(
        self, replicas: list[int], isr: list[int], hosted: tuple[int, ...] = (1,), leader: int | None = None
    ) -> None:
        self._pages = FollowedPages()
        self._hosted = hosted
        self.leaders = LEADERS
        self._image = cluster_image([1, 2, 3, 4], [partition(0, 0, replicas, isr=isr, leader=leader)])
        self._take(self._image)

    def _take(self, image: MetadataImage, *, is_recast: bool = False) -> FollowedChanges:
        self._image = image
        return self._pages.update(image, self._hosted, self.leaders, COLUMNS, OWN_END, is_recast=is_recast)

    def replay(self, *records: Record) -> FollowedChanges:
        return self._take(replayed(self._image, *records))

    def reload(self, *records: Record) -> None:
        """The state after these records, read from a checkpoint."""
        self._take(reloaded(replayed(self._image, *records)))

    def recast(self) -> None:
        """The same image once more, with other leaders."""
        self._take(self._image, is_recast=True)

    def copy(self, copied: int) -> None:
        """Once that was said which is to be."""
        self.said()
        self._pages.copy(Pace(copy_bytes_per_s=1_000), float(copied), COLUMNS)

    def said(self) -> list[int]:
        """What is said, over any link, to be held by replicas here."""
        return [held for message in self.messages() for held in message.held.tolist()]

    def messages(self) -> list[FollowedRows]:
        """What is said over each link."""
        return [self._pages.take_unsaid(link, self._hosted, 10) for link in range(2)]

    def say_again(self) -> None:
        """Nothing was ever answered."""
        never = LinkColumns(np.full(2, np.inf), np.zeros(2, np.bool_), np.zeros(2), np.zeros(2))
        self._pages.say_again(None, None, never)

    def unsay(self, message: FollowedRows) -> None:
        """It did not arrive."""
        self._pages.unsay(message, np.arange(len(message)))

    def row_counts(self) -> list[int]:
        return self._pages.row_counts(2)


def in_directory(directory: bytes) -> PartitionChangeRecord:
    return PartitionChangeRecord(0, uuid(0), directories=(uuid(502), directory))


def online(*directories: bytes) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, log_dirs=directories)


def test_what_a_replica_holds_outlasts_that_nobody_leads() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    assert not followed.replay(change(0, 0, leader=-1)).dropped_links, "who led knows"
    assert (followed.said(), followed.row_counts()) == ([], [0, 0]), "there is nobody to say it to"
    followed.replay(change(0, 0, leader=2))
    assert (followed.said(), followed.row_counts()) == ([777], [1, 0])


def test_what_a_level_replica_holds_outlasts_that_nobody_leads() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(2_000)
    assert followed.said() == [1_000]
    followed.replay(change(0, 0, leader=-1))
    followed.replay(change(0, 0, leader=2))
    assert followed.said() == [900], "what all level replicas of the link held"


def test_what_a_replica_had_as_a_leader_outlasts_that_nobody_leads() -> None:
    followed = Followed([1, 3], isr=[1])
    followed.replay(change(0, 0, leader=-1))
    followed.replay(change(0, 0, leader=3, isr=[3]))
    assert followed.said() == [OWN_END]


def test_what_everything_was_is_not_known_under_another_leader() -> None:
    followed = Followed([2, 1, 3], isr=[2, 1])
    followed.replay(change(0, 0, leader=-1, isr=[2]))
    followed.replay(change(0, 0, leader=3, isr=[3]))
    assert followed.said() == [NOTHING]


def test_what_a_replica_holds_outlasts_that_its_directory_is_offline() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    assert followed.replay(online(OTHER)).dropped_links == {0}, "its leader must hear that it follows no more"
    assert (followed.said(), followed.row_counts()) == ([], [0, 0])
    followed.copy(100)
    assert not followed.replay(online(OTHER)).dropped_links
    followed.replay(online(DIRECTORY, OTHER))
    assert (followed.said(), followed.row_counts()) == ([777], [1, 0])


def test_what_is_said_again_once_a_directory_is_online_again_beside_another_who_follows() -> None:
    followed = Followed([2, 1, 4], isr=[2], hosted=(1, 4))
    followed.copy(777)
    followed.replay(online(OTHER))
    assert followed.said() == [], "broker 4 has said it"
    followed.replay(online(DIRECTORY, OTHER))
    assert followed.said() == [777]


def test_what_did_not_arrive_is_not_said_again_of_a_replica_whose_directory_is_offline() -> None:
    followed = Followed([2, 1, 4], isr=[2], hosted=(1, 4))
    message = followed.messages()[0]
    followed.replay(online(OTHER))
    followed.unsay(message)
    assert followed.messages()[0].followers.tolist() == [4]


def test_what_a_replica_holds_outlasts_that_it_is_assigned_its_directory_while_nobody_leads() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.replay(in_directory(DIRECTORY_UNASSIGNED))
    followed.copy(777)
    followed.replay(change(0, 0, leader=-1))
    followed.replay(in_directory(DIRECTORY))
    followed.replay(change(0, 0, leader=2))
    assert followed.said() == [777]


def test_what_lies_in_a_directory_that_is_offline_does_not_come_along_to_another() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    followed.replay(online(OTHER))
    followed.replay(in_directory(OTHER))
    assert followed.said() == [NOTHING]


def test_what_a_replica_holds_comes_along_from_one_directory_that_is_online_to_another() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.replay(online(DIRECTORY, OTHER))
    followed.copy(777)
    followed.replay(in_directory(OTHER), change(0, 0, leader=3))
    assert followed.said() == [777]


def test_what_a_replica_holds_outlasts_that_directories_are_numbered_anew() -> None:
    """As in a state that is read from a checkpoint, where the first directory of the replica is no more."""
    followed = Followed([2, 1], isr=[2])
    followed.replay(online(DIRECTORY, OTHER), in_directory(OTHER))
    followed.copy(777)
    followed.replay(change(0, 0, leader=-1))
    followed.reload()
    followed.replay(change(0, 0, leader=2))
    assert followed.said() == [777]
    led = Followed([2, 1], isr=[1, 2], leader=1)
    led.replay(online(DIRECTORY, OTHER), in_directory(OTHER))
    led.reload(change(0, 0, leader=2, isr=[2]))
    assert led.said() == [OWN_END]


def test_what_lies_in_an_online_directory_comes_along_to_another_where_a_checkpoint_knows_it_no_more() -> None:
    """Nothing lies in it any more, so that no replica of the image that is read anew names it."""
    followed = Followed([2, 1], isr=[2])
    followed.replay(online(DIRECTORY, OTHER))
    followed.copy(777)
    followed.reload(in_directory(OTHER), change(0, 0, leader=3))
    assert followed.said() == [777]
    led = Followed([2, 1], isr=[1, 2], leader=1)
    led.replay(online(DIRECTORY, OTHER))
    led.reload(in_directory(OTHER), change(0, 0, leader=2, isr=[2]))
    assert led.said() == [OWN_END]


def test_what_lies_in_a_directory_that_is_offline_does_not_come_along_to_one_that_has_its_number_now() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    followed.replay(online(OTHER))
    followed.reload(in_directory(OTHER))
    assert followed.said() == [NOTHING]
    led = Followed([2, 1], isr=[1, 2], leader=1)
    led.reload(online(OTHER), in_directory(OTHER), change(0, 0, leader=2, isr=[2]))
    assert led.said() == [NOTHING]


def test_what_lies_in_a_directory_that_went_offline_as_another_was_taken_does_not_come_along() -> None:
    """All in one image, which of a process that was behind stands for many."""
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    followed.replay(online(OTHER), in_directory(OTHER))
    assert followed.said() == [NOTHING]
    led = Followed([2, 1], isr=[1, 2], leader=1)
    led.replay(online(OTHER), in_directory(OTHER), change(0, 0, leader=2, isr=[2]))
    assert led.said() == [NOTHING]


def test_what_was_lost_with_its_directory_does_not_come_along() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.copy(777)
    followed.replay(in_directory(DIRECTORY_LOST))
    followed.replay(in_directory(DIRECTORY))
    assert followed.said() == [NOTHING]


def test_what_was_led_comes_along_from_a_directory_that_is_online() -> None:
    led = Followed([2, 1], isr=[1, 2], leader=1)
    led.replay(online(DIRECTORY, OTHER), in_directory(OTHER), change(0, 0, leader=2, isr=[2]))
    assert led.said() == [OWN_END]


def test_what_nobody_leads_comes_along_from_one_directory_that_is_online_to_another() -> None:
    followed = Followed([2, 1], isr=[2])
    followed.replay(online(DIRECTORY, OTHER))
    followed.copy(777)
    followed.replay(change(0, 0, leader=-1))
    followed.replay(in_directory(OTHER))
    followed.replay(change(0, 0, leader=2))
    assert followed.said() == [777]


def test_whoever_left_the_isr_before_it_could_say_that_it_holds_everything_says_so_no_more() -> None:
    followed = Followed([2, 1], isr=[2, 1])
    followed.replay(change(0, 0, isr=[2]))
    [row] = [message for message in followed.messages() if len(message)]
    assert (row.held.tolist(), row.is_level.tolist()) == ([NOTHING], [False])
    followed.copy(100)
    followed.replay(change(0, 0, leader=3))
    assert followed.said() == [100], "it begins with nothing, and says what it copied"


def test_whoever_left_the_isr_before_its_leader_answered_does_not_say_again_that_it_holds_everything() -> None:
    followed = Followed([2, 1], isr=[2, 1])
    assert followed.said() == [EVERYTHING]
    followed.replay(change(0, 0, isr=[2]))
    followed.say_again()
    [row] = [message for message in followed.messages() if len(message)]
    assert (row.held.tolist(), row.is_level.tolist()) == ([NOTHING], [False])


def test_what_was_said_to_another_process_of_a_leader_is_said_again() -> None:
    followed = Followed([2, 1], isr=[2, 1])
    assert followed.said() == [EVERYTHING]
    followed.leaders = Leaders(LEADERS.brokers, LEADERS.links[::-1].copy())
    followed.recast()
    assert (followed.said(), followed.row_counts()) == ([900], [0, 1])


def test_what_was_led_is_not_that_of_another_topic_in_its_row() -> None:
    followed = Followed([1, 3], isr=[1])
    other = partition(1, 0, [3, 1], isr=[3])
    followed.replay(RemoveTopicRecord(uuid(0)), TopicRecord("other", uuid(1)), other)
    assert followed.said() == [NOTHING]
