"""The broker lifecycle: what is sent when, and what becomes of each answer. Times are milliseconds."""

from quorate.broker.lifecycle.lifecycle import (
    BrokerLifecycle,
    LifecycleTiming,
    SendHeartbeat,
    SendRegistration,
)
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid

INCARNATION = b"incarnation-0001"
OTHER: Uuid = b"incarnation-0002"
TIMING = LifecycleTiming(
    heartbeat_interval_ms=2_000,
    retry_max_ms=1_000,
    registration_timeout_ms=60_000,
    shutdown_timeout_ms=30_000,
    directory_failure_timeout_ms=20_000,
)


def lifecycle(draw: float = 0.0) -> BrokerLifecycle:
    return BrokerLifecycle(11, INCARNATION, TIMING, now_ms=0.0, draw=lambda: draw)


def state(machine: BrokerLifecycle) -> LifecycleState:
    """The state, asked anew each time."""
    return machine.state


def heartbeat(machine: BrokerLifecycle, now_ms: float) -> SendHeartbeat:
    command = machine.next_command(now_ms)
    assert isinstance(command, SendHeartbeat), (machine.state, machine.next_wake_ms(), command)
    return command


def answer(
    machine: BrokerLifecycle, now_ms: float, *, caught_up: bool = True, fenced: bool = False, shut_down: bool = False
) -> None:
    machine.answered_heartbeat(
        now_ms, is_caught_up=caught_up, is_fenced=fenced, should_shut_down=shut_down, session_ms=0 if fenced else 9_000
    )


def running(now_ms: float = 0.0, draw: float = 0.0) -> BrokerLifecycle:
    machine = lifecycle(draw)
    assert machine.next_command(now_ms) == SendRegistration(-1)
    machine.answered_registration(now_ms, 7)
    machine.ready_to_unfence(now_ms)
    heartbeat(machine, now_ms)
    answer(machine, now_ms)
    assert state(machine) is LifecycleState.RUNNING
    return machine


def test_start_all_well_goes_from_registration_to_running() -> None:
    """A broker registers, is behind, catches up, has its first image, and is unfenced."""
    machine = lifecycle()

    assert machine.next_command(0) == SendRegistration(-1)
    assert machine.next_command(0) is None, "one request at a time"
    machine.answered_registration(5, 7)
    assert state(machine) is LifecycleState.CATCHING_UP
    assert heartbeat(machine, 5) == SendHeartbeat(7, wants_fence=True, wants_shutdown=False)
    answer(machine, 6, caught_up=False, fenced=True)
    assert machine.next_command(6) is None
    assert machine.next_wake_ms() == 16, "a broker that is behind asks again soon"
    heartbeat(machine, 16)
    answer(machine, 17, caught_up=True, fenced=True)
    assert state(machine) is LifecycleState.FENCED
    assert machine.next_wake_ms() == 2_017
    machine.ready_to_unfence(100)
    assert heartbeat(machine, 100) == SendHeartbeat(7, wants_fence=False, wants_shutdown=False)
    answer(machine, 101, fenced=False)
    assert state(machine) is LifecycleState.RUNNING
    assert machine.next_wake_ms() == 2_101


def test_start_ready_before_caught_up_asks_to_be_unfenced_at_once() -> None:
    machine = lifecycle()
    machine.next_command(0)
    machine.ready_to_unfence(0)
    machine.answered_registration(0, 7)
    heartbeat(machine, 0)
    answer(machine, 1, caught_up=True, fenced=True)

    assert heartbeat(machine, 1) == SendHeartbeat(7, wants_fence=False, wants_shutdown=False)


def test_heartbeat_jitter_never_lengthens_the_interval() -> None:
    assert running(draw=0.0).next_wake_ms() == 2_000
    assert running(draw=0.999).next_wake_ms() == 2_000 - 0.1 * 0.999 * 2_000


def test_heartbeat_failing_backs_off_to_the_maximum_and_recovers() -> None:
    machine = running()
    now, waits = 2_000.0, []
    for _ in range(6):
        heartbeat(machine, now)
        machine.failed(now, None, "no controller answered")
        wake = machine.next_wake_ms()
        assert wake is not None
        waits.append(wake - now)
        now = wake

    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    assert state(machine) is LifecycleState.RUNNING, "only the controller fences"
    assert machine.trouble == "no controller answered"
    heartbeat(machine, now)
    answer(machine, now)
    assert machine.next_wake_ms() == now + 2_000
    assert machine.trouble is None


def test_running_fenced_by_the_controller_asks_to_be_unfenced_again() -> None:
    """A process that was frozen finds its session expired."""
    machine = running()
    heartbeat(machine, 2_000)
    answer(machine, 2_001, caught_up=True, fenced=True)

    assert state(machine) is LifecycleState.FENCED
    assert heartbeat(machine, 4_001) == SendHeartbeat(7, wants_fence=False, wants_shutdown=False)
    answer(machine, 4_002)
    assert state(machine) is LifecycleState.RUNNING


def test_heartbeat_stale_epoch_registers_again_with_the_same_incarnation() -> None:
    """An operator unregistered the broker while it was running."""
    for code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
        machine = running()
        heartbeat(machine, 2_000)
        machine.failed(2_000, code, "no such registration")

        assert state(machine) is LifecycleState.REGISTERING
        assert not machine.is_registered
        assert machine.next_command(2_100) == SendRegistration(previous_epoch=7)
        machine.answered_registration(2_101, 40)
        assert (machine.broker_epoch, machine.registration_count) == (40, 2)
        assert heartbeat(machine, 2_101).broker_epoch == 40


def test_registration_duplicate_at_first_waits_for_the_predecessors_session() -> None:
    machine = lifecycle()
    machine.next_command(0)
    machine.failed(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another broker has this id")

    assert state(machine) is LifecycleState.REGISTERING
    assert machine.next_command(100) == SendRegistration(-1)


def test_registration_duplicate_after_losing_it_ends_the_broker() -> None:
    """Another process took the id while this one was cut off: they must not take it from each other for ever."""
    machine = running()
    heartbeat(machine, 2_000)
    machine.failed(2_000, ErrorCode.STALE_BROKER_EPOCH, "expected broker epoch 40")
    machine.next_command(2_100)
    machine.failed(2_100, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another broker has this id")

    assert state(machine) is LifecycleState.FAILED
    assert "another process has registered as broker 11" in (machine.failure or "")
    assert machine.next_command(9_999) is None
    assert machine.next_wake_ms() is None


def test_registration_refused_for_good_fails_at_once() -> None:
    for code in (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REGISTRATION, ErrorCode.UNSUPPORTED_VERSION):
        machine = lifecycle()
        machine.next_command(0)
        machine.failed(0, code, "the reason")

        assert state(machine) is LifecycleState.FAILED
        assert machine.failure == "the controller refuses broker 11: the reason"


def test_registration_never_answered_fails_at_the_deadline() -> None:
    machine = lifecycle()
    machine.next_command(0)

    assert machine.next_wake_ms() == 60_000
    assert machine.next_command(59_999) is None
    assert state(machine) is LifecycleState.REGISTERING
    machine.next_command(60_000)
    assert state(machine) is LifecycleState.FAILED
    assert machine.failure == "broker 11 could not register within 60 s: no controller answered"


def test_registration_after_a_first_one_has_no_deadline() -> None:
    machine = running()
    heartbeat(machine, 2_000)
    machine.failed(2_000, ErrorCode.STALE_BROKER_EPOCH, "gone")
    now = 2_100.0
    for _ in range(200):
        machine.next_command(now)
        machine.failed(now, None, "no controller answered")
        now += 1_000

    assert state(machine) is LifecycleState.REGISTERING


def test_shutdown_with_leaderships_ends_when_the_controller_says_so() -> None:
    machine = running()
    machine.begin_shutdown(500)

    assert state(machine) is LifecycleState.CONTROLLED_SHUTDOWN
    assert heartbeat(machine, 500) == SendHeartbeat(7, wants_fence=False, wants_shutdown=True)
    answer(machine, 510)
    assert machine.next_wake_ms() == 560, "the first answer only says that it has begun"
    heartbeat(machine, 560)
    answer(machine, 570)
    assert machine.next_wake_ms() == 670
    heartbeat(machine, 670)
    answer(machine, 680, fenced=True, shut_down=True)
    assert state(machine) is LifecycleState.STOPPED
    assert machine.is_clean_stop


def test_shutdown_nobody_answers_ends_at_its_deadline() -> None:
    machine = running()
    machine.begin_shutdown(500)
    heartbeat(machine, 500)

    assert machine.next_wake_ms() == 30_500
    machine.next_command(30_500)
    assert state(machine) is LifecycleState.STOPPED
    assert not machine.is_clean_stop


def test_shutdown_asked_twice_leaves_at_once() -> None:
    machine = running()
    machine.begin_shutdown(500)
    machine.begin_shutdown(600)

    assert state(machine) is LifecycleState.STOPPED
    assert not machine.is_clean_stop


def test_shutdown_before_registering_stops_without_a_word() -> None:
    machine = lifecycle()
    machine.begin_shutdown(0)

    assert state(machine) is LifecycleState.STOPPED
    assert machine.is_clean_stop


def test_shutdown_while_the_registration_is_out_still_leaves_in_order() -> None:
    machine = lifecycle()
    machine.next_command(0)
    machine.begin_shutdown(1)
    assert state(machine) is LifecycleState.REGISTERING
    machine.answered_registration(2, 7)

    assert heartbeat(machine, 2).wants_shutdown
    answer(machine, 3, fenced=True, shut_down=True)
    assert machine.is_clean_stop


def test_shutdown_registration_gone_is_a_clean_stop() -> None:
    machine = running()
    machine.begin_shutdown(500)
    heartbeat(machine, 500)
    machine.failed(500, ErrorCode.STALE_BROKER_EPOCH, "unregistered")

    assert state(machine) is LifecycleState.STOPPED
    assert machine.is_clean_stop


def test_saw_registration_of_a_later_incarnation_ends_the_broker() -> None:
    machine = running()
    machine.saw_registration(7, INCARNATION)
    machine.saw_registration(3, OTHER)
    assert state(machine) is LifecycleState.RUNNING, "its own, and one from before it"
    machine.saw_registration(9, OTHER)

    assert state(machine) is LifecycleState.FAILED


def test_answers_after_the_end_change_nothing() -> None:
    machine = running()
    heartbeat(machine, 2_000)
    machine.begin_shutdown(2_000)
    machine.begin_shutdown(2_000)
    answer(machine, 2_001)
    machine.failed(2_002, None, "late")
    machine.begin_shutdown(2_003)

    assert state(machine) is LifecycleState.STOPPED


def test_register_again_while_a_heartbeat_is_out_comes_after_its_answer() -> None:
    machine = running()
    heartbeat(machine, machine.next_wake_ms() or 0.0)
    machine.register_again(50_000.0)
    answer(machine, 50_001.0, fenced=False)

    command = machine.next_command(machine.next_wake_ms() or 0.0)
    assert isinstance(command, SendRegistration)
    assert state(machine) is LifecycleState.REGISTERING
    machine.answered_registration(60_000.0, machine.broker_epoch)
    assert isinstance(machine.next_command(60_000.0), SendHeartbeat), "once is enough"


def test_register_again_is_not_for_a_broker_that_leaves() -> None:
    machine = running()
    machine.begin_shutdown(50_000.0)
    machine.register_again(50_000.0)

    assert heartbeat(machine, 50_000.0).wants_shutdown


FIRST, SECOND = b"directory-000001", b"directory-000002"


def test_failed_directory_is_told_at_once_and_then_nobody_waits_for_it() -> None:
    machine = running()
    machine.directories_failed(100, [FIRST])
    assert heartbeat(machine, 100), "it does not wait for its interval"
    machine.answered_heartbeat(
        110, is_caught_up=True, is_fenced=False, should_shut_down=False, session_ms=9_000, told_failed=[FIRST]
    )
    machine.directories_failed(120, [FIRST])
    assert machine.next_command(120) is None
    assert machine.next_wake_ms() == 2_110, "only the next heartbeat is due"
    assert machine.next_command(50_000) is not None
    assert state(machine) is LifecycleState.RUNNING


def test_directory_that_fails_while_a_heartbeat_is_under_way_is_told_with_the_next_at_once() -> None:
    machine = running()
    machine.directories_failed(100, [FIRST])
    heartbeat(machine, 100)
    machine.directories_failed(105, [FIRST, SECOND])
    machine.answered_heartbeat(110, is_caught_up=True, is_fenced=False, should_shut_down=False, told_failed=[FIRST])
    assert heartbeat(machine, 110)


def test_directory_whose_failure_cannot_be_told_in_time_ends_the_broker() -> None:
    """Each has its own time, from its own failure on; a heartbeat that fails tells nothing."""
    machine = running()
    machine.directories_failed(100, [FIRST])
    heartbeat(machine, 100)
    machine.failed(5_000, None, "no controller answers")
    machine.directories_failed(6_000, [FIRST, SECOND])
    heartbeat(machine, 6_000)
    assert machine.next_wake_ms() == 20_100
    assert machine.next_command(20_099) is None
    assert state(machine) is LifecycleState.RUNNING
    assert machine.next_command(20_100) is None
    assert state(machine) is LifecycleState.FAILED
    assert machine.failure == (
        "broker 11 could not tell the controllers within 20 s that its log directory ZGlyZWN0b3J5LTAwMDAwMQ has "
        "failed: no controller answers"
    )


def test_directory_that_fails_before_the_broker_is_known_has_its_time_too() -> None:
    machine = lifecycle()
    machine.directories_failed(100, [FIRST])
    assert machine.next_command(100) == SendRegistration(-1)
    assert machine.next_wake_ms() == 20_100
    machine.next_command(20_100)
    assert state(machine) is LifecycleState.FAILED


def test_broker_that_can_serve_no_more_asks_to_be_fenced_until_it_is_ready() -> None:
    machine = running()

    machine.hold_unfencing(500)
    assert heartbeat(machine, 500).wants_fence
    answer(machine, 500, fenced=True)
    machine.ready_to_unfence(600)

    assert not heartbeat(machine, 600).wants_fence


def test_broker_that_has_no_session_to_count_on_asks_again_soon() -> None:
    """It was unfenced, and has not caught up with that: it must not serve, and does not wait for a whole interval."""
    machine = running()
    heartbeat(machine, 2_000)

    machine.answered_heartbeat(2_000, is_caught_up=True, is_fenced=False, should_shut_down=False, session_ms=0)

    assert machine.next_wake_ms() == 2_100


def test_heartbeats_that_are_rarer_than_sessions_are_said_until_they_are_not() -> None:
    machine, said = running(), "heartbeats come every 2000 ms and a session lasts 2500 ms: lifecycle.heartbeat_interval"
    for now_ms, session_ms, is_said in (
        (2_000, 2_500, True),
        (4_000, 0, True),
        (6_000, 2_501, False),
        (8_000, 0, False),
    ):
        heartbeat(machine, now_ms)
        machine.answered_heartbeat(
            now_ms, is_caught_up=True, is_fenced=False, should_shut_down=False, session_ms=session_ms
        )
        assert (machine.trouble or "").startswith(said) is is_said
