"""`quorate status` of a cluster that is ill: what explains it, what to do, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone


async def test_status_of_lost_brokers_tells_which_explain_what_and_what_to_do(kafka_data: Path) -> None:
    told = await alone("status", "--from", str(kafka_data / "static/m2/log"))
    assert told.code == exit_codes.CRITICAL
    lines = [line.strip() for line in told.out.splitlines()]
    place = lines.index("- 782 partitions of 3,061 without a leader")
    assert lines[place + 1 : place + 4] == [
        "65 topics, 25.5% of the partitions",
        "because broker 13 is down since 2026-11-21T00:15:13.059+00:00: 781 partitions",
        "because broker 14 is down since 2026-11-21T00:14:53.807+00:00: 2 partitions",
    ]
    to_do = lines[lines.index("To do:") + 1 :]
    assert to_do[0].startswith("start broker 13: 780 partitions are led again")
    assert to_do[0].endswith("(risk: LAST_KNOWN_LEADER)")
    assert to_do[1].startswith("quorate node start broker-13  (a cluster of quorate up; elsewhere: its service")


async def test_status_for_programs_has_a_code_for_each_reason_and_the_explanation(kafka_data: Path) -> None:
    told = await alone("status", "--from", str(kafka_data / "static/m2/log"), "--json")
    reply = json.loads(told.out)
    assert [(one["code"], one["nodes"], one["partitions"]) for one in reply["reasons"]] == [
        ("PARTITIONS_OFFLINE", [], 782),
        ("BROKERS_FENCED", [13, 14], 0),
        ("PARTITIONS_UNDER_MIN_ISR", [], 789),
        ("PARTITIONS_UNDER_REPLICATED", [], 2281),
    ]
    explained = reply["status"]["explanation"]["symptoms"]
    counted = {one["code"]: one["partitions"] for one in reply["reasons"] if one["partitions"]}
    assert {one["code"]: one["partitions"] for one in explained if one["code"] in counted} == counted
    assert not any(one["named"] for one in explained)
    small = await alone("status", "--from", str(kafka_data / "static/m1/log"), "--json")
    assert json.loads(small.out)["status"]["explanation"] is None
