"""Each check of the simulated system, in a situation in which it must fail.

The system is a real one that runs quietly; what is told to the check is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from quorate.broker.metadata.loader import LoaderFault
from quorate.broker.metadata.metadata_cache import MetadataCache
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.system.checks import SystemChecks
from quorate.scripts.simulation.system.controller_process import RunEndingFaults
from quorate.scripts.simulation.system.http_wire import WireAnswer, WireRequest
from quorate.scripts.simulation.system.scenarios.stage import SystemStage
from quorate.scripts.simulation.system.workload import AdminClient
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import EMPTY_DIGEST

SEED: Final = 1


@pytest.fixture
def stage() -> Iterator[SystemStage]:
    """A topic was made, and everything is level."""
    stage = SystemStage(SEED, None)
    stage.begin()
    stage.world.run_for(0.5)
    yield stage
    stage.world.close()


def violation_of(stage: SystemStage, match: str) -> None:
    """What was told to the checks ends the run with the next event."""
    with pytest.raises(Violation, match=match):
        stage.world.run_for(0.1)


def last_batch(stage: SystemStage) -> bytes:
    storage = stage.active.storage
    assert storage is not None
    return storage.log.read(storage.log.entry_count - 1)


def of_another_state(stage: SystemStage) -> MetadataImage:
    """The state of before the topic under the newest offset."""
    states = stage.world.checks.reference.states
    newest = states[-1].stable
    return states[1].stable._replace(provenance=newest.provenance)


def test_committed_batch_that_breaks_the_order_of_epochs_is_found(stage: SystemStage) -> None:
    end = stage.world.checks.reference.end_offset

    stage.world.checks.committed(place_batch(last_batch(stage), end, 0))

    violation_of(stage, r"the committed log breaks an invariant at offset .*: a leader epoch fell in the log")


def test_committed_batch_that_no_step_of_a_reassignment_makes_is_found(stage: SystemStage) -> None:
    reference = stage.world.checks.reference
    topic_id = next(iter(reference.newest.stable.topics.by_id))
    change = PartitionChangeRecord(0, topic_id, replicas=(99,), directories=(b"d" * 16,))
    batch = data_batch([(change, 2)], 0)

    stage.world.checks.committed(place_batch(batch, reference.end_offset, reference.epochs[-1]))

    violation_of(
        stage, r"no step of a reassignment leads from \[\d+\] .* to \[99\] .* a replica comes that was not being added"
    )


def test_loaded_checkpoint_that_nobody_committed_is_found(stage: SystemStage) -> None:
    end = stage.world.checks.reference.end_offset

    stage.world.checks.loaded_checkpoint(stage.active, end, 99)

    violation_of(stage, f"loaded a checkpoint at {end} that nobody committed")


def test_state_of_more_than_is_committed_is_found(stage: SystemStage) -> None:
    stage.world.checks.reference.states.pop()

    stage.world.checks.state_of(stage.active)

    violation_of(stage, r"it applied up to .*, more than can be replayed")


def test_stable_state_that_ends_elsewhere_is_found(stage: SystemStage, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = stage.world.checks.reference.states[1].stable
    monkeypatch.setattr(QuorumController, "stable", property(lambda _: earlier))
    monkeypatch.setattr(SystemChecks, "_is_due", lambda *_: False)

    stage.world.checks.state_of(stage.active)

    violation_of(stage, f"its stable state ends at {earlier.provenance.end_offset}")


def test_state_that_the_log_does_not_say_is_found(stage: SystemStage, monkeypatch: pytest.MonkeyPatch) -> None:
    other = of_another_state(stage)
    monkeypatch.setattr(QuorumController, "stable", property(lambda _: other))

    stage.world.checks.state_of(stage.active)

    violation_of(stage, r"its state at .* is not what the log says")


def test_image_of_a_broker_that_the_log_does_not_say_is_found(stage: SystemStage) -> None:
    stage.world.checks.broker_image(11, of_another_state(stage), EMPTY_DIGEST)

    violation_of(stage, r"broker 11: its state at .* is not what the log says")


def test_image_of_a_broker_beyond_what_is_committed_is_found(stage: SystemStage) -> None:
    newest = stage.world.checks.reference.newest.stable
    ahead = newest._replace(provenance=newest.provenance._replace(last_contained_offset=9_999))

    stage.world.checks.broker_image(11, ahead, EMPTY_DIGEST)

    violation_of(stage, r"broker 11: a state at 10000, and only .* is committed")


def test_answer_500_is_found(stage: SystemStage) -> None:
    request = WireRequest("GET", "/v1/topics", {"X-Request-Id": "none"}, b"")

    stage.world.answered(request, WireAnswer(500, {}, b"why"))

    violation_of(stage, "GET /v1/topics was answered why")


def test_task_that_dies_unheard_is_found(stage: SystemStage) -> None:
    stage.active.loop.call_exception_handler({"message": "a task died", "exception": KeyError("nobody")})

    violation_of(stage, "a task died: KeyError")


def test_broker_that_cannot_follow_is_found(stage: SystemStage) -> None:
    stage.world.broker_ended(stage.world.brokers[0], LoaderFault("cannot be replayed"))

    violation_of(stage, "broker 11 cannot follow: cannot be replayed")


def test_fault_of_a_controller_is_found(stage: SystemStage) -> None:
    RunEndingFaults(stage.active).fault("replay", ValueError("wrong"))

    violation_of(stage, "fault in replay: ValueError")


def test_alarm_of_a_digest_watch_is_found(stage: SystemStage) -> None:
    RunEndingFaults(stage.active).alarm("digest", "the states differ")

    violation_of(stage, "alarm of digest: the states differ")


def test_controller_that_must_stop_is_found(stage: SystemStage) -> None:
    RunEndingFaults(stage.active).fatal("state", ValueError("wrong"))

    violation_of(stage, "must stop: state: ValueError")


def test_system_that_does_not_come_to_rest_is_found(stage: SystemStage) -> None:
    """Everything heals, but the controllers stay frozen: nobody is there to say that a request is in vain."""
    stage.world.options = replace(stage.world.options, heal_seconds=2.0)
    stage.world.heal()
    for controller in stage.world.controllers:
        controller.freeze()

    with pytest.raises(Violation, match=r"2.0 s after all faults: waiting for all connections to be whole"):
        stage.world.converge()


def test_publisher_of_a_broker_that_raises_is_found(stage: SystemStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Production isolates it, and goes on without the update."""

    def fail(*_: object) -> None:
        raise ValueError("no room")

    monkeypatch.setattr(MetadataCache, "on_metadata_update", fail)

    stage.send(AdminClient.add_partitions)

    violation_of(stage, r"broker 1\d: metadata-cache.on_metadata_update: ValueError")


def test_rest_is_not_reached_while_a_connection_is_forgotten(
    stage: SystemStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All nodes are level; but what is sent on it goes nowhere, and will cost somebody an answer."""
    world = stage.world
    world.heal()
    world.run_for(3.0)
    assert world._is_whole()
    first, second = [controller.node_id for controller in world.controllers][:2]
    connection = world.network.connection(first, second)
    assert connection is not None

    connection.is_forgotten = True

    assert world._is_level()
    assert not world._is_whole()
    whole_at_the_end: list[bool] = []
    usual = AdminClient.conclude

    def conclude(client: AdminClient) -> None:
        whole_at_the_end.append(world.network.is_whole())
        usual(client)

    monkeypatch.setattr(AdminClient, "conclude", conclude)
    world.converge()
    assert whole_at_the_end
    assert all(whole_at_the_end)
    renewed = world.network.connection(first, second)
    assert renewed is not None
    assert renewed.number != connection.number
