"""``placement``: calls on one placer, whose choices come from one ``java.util.Random``."""

from __future__ import annotations

from typing import Any

from quorate.controller.topics.placement import Racks, ReplicaPlacer, UsableBroker
from quorate.metadata_log.errors import ApiError
from quorate.scripts.conformance_runner.comparison import differences
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form


def run_vector(vector: Any) -> VectorOutcome:
    """Number for number, sentence for sentence."""
    given = vector["input"]
    brokers = [UsableBroker(broker["id"], broker["rack"], broker["fenced"]) for broker in given["brokers"]]
    placer = ReplicaPlacer(Racks(brokers), JavaRandom(given["random_seed"]))
    results = [_place(placer, call) for call in given["calls"]]
    return VectorOutcome(vector["id"], differences(vector["expected"], {"results": results}, ignores=("class",)))


def _place(placer: ReplicaPlacer, call: Form) -> Form:
    try:
        return {"assignments": placer.place(call["num_partitions"], call["replication_factor"]).tolist()}
    except ApiError as refusal:
        return {"exception": {"error": refusal.code.name, "message": refusal.message}}
