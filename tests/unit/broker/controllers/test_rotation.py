"""Which controller is asked next, and after what wait."""

from quorate.broker.controllers.rotation import Rotation


def rotation(count: int, first: int = 0, draw: float = 0.0) -> Rotation:
    return Rotation(count, first, wait_first_ms=50, wait_max_ms=300, draw=lambda: draw)


def test_failed_one_of_three_moves_on_without_a_wait() -> None:
    ring = rotation(3, first=5)

    assert ring.index == 2
    assert ring.failed() == 0
    assert ring.index == 0


def test_failed_all_in_turn_waits_longer_each_round() -> None:
    ring = rotation(3)

    assert [ring.failed() for _ in range(15)] == [0, 0, 50, 0, 0, 100, 0, 0, 200, 0, 0, 300, 0, 0, 300]


def test_failed_after_a_success_begins_anew() -> None:
    ring = rotation(3)
    for _ in range(5):
        ring.failed()
    ring.succeeded()

    assert [ring.failed() for _ in range(3)] == [0, 0, 50]


def test_failed_single_controller_waits_every_time() -> None:
    ring = rotation(1, draw=0.5)

    assert [ring.failed(), ring.failed()] == [45, 90], "up to a fifth less, so that brokers do not return together"
    assert ring.index == 0
