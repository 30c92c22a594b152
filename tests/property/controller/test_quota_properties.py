"""The quota of mutations against exact numbers, whoever asks when for how much, and what it promises in any stretch."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.quotas.mutations import MutationQuota
from quorate.controller.quotas.token_bucket import TokenBucket
from quorate.metadata_log.errors import ApiError
from tests.record_stream import EXAMPLES

#: (ms since the one before, partitions).
ASKED = st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 500)), max_size=40)
#: Powers of two: the floats are exact then, and so is what is compared.
RATES = st.sampled_from([0.25, 0.5, 1.0, 8.0, 64.0])
BURSTS = st.integers(1, 64)


def taken(rate: float, burst_seconds: int, asked: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What was asked for, as (time, partitions, throttle time); -1: it was counted."""
    bucket, now_ms = TokenBucket(rate * burst_seconds, 0.0), 0
    outcomes = []
    for later, partitions in asked:
        now_ms += later
        quota = MutationQuota(bucket, rate, rate * burst_seconds, float(now_ms), lambda: None)
        try:
            quota.take(partitions)
            quota.charge()
            outcomes.append((now_ms, partitions, -1))
        except ApiError:
            outcomes.append((now_ms, partitions, quota.throttle_time_ms))
    return outcomes


@settings(max_examples=EXAMPLES, deadline=None)
@given(RATES, BURSTS, ASKED)
def test_quota_takes_and_refuses_what_exact_numbers_say(
    rate: float, burst_seconds: int, asked: list[tuple[int, int]]
) -> None:
    burst = tokens = Fraction(rate) * burst_seconds
    last = 0
    for now_ms, partitions, throttle_ms in taken(rate, burst_seconds, asked):
        tokens = min(burst, tokens + Fraction(rate) * (now_ms - last) / 1000)
        last = now_ms
        wait_ms = -tokens / Fraction(rate) * 1000
        if abs(tokens) > Fraction(1, 10**6):
            assert (throttle_ms >= 0) == (tokens < 0)
        if throttle_ms >= 0:
            assert abs(throttle_ms - wait_ms) <= Fraction(1, 2) + Fraction(1, 1000)
        else:
            tokens -= partitions


@settings(max_examples=EXAMPLES, deadline=None)
@given(RATES, BURSTS, ASKED)
def test_no_stretch_has_more_than_its_rate_a_burst_and_one_request(
    rate: float, burst_seconds: int, asked: list[tuple[int, int]]
) -> None:
    counted = [(at, partitions) for at, partitions, throttle_ms in taken(rate, burst_seconds, asked) if throttle_ms < 0]
    for first, (since_ms, _) in enumerate(counted):
        total = 0
        for now_ms, partitions in counted[first:]:
            allowed = rate * burst_seconds + rate * (now_ms - since_ms) / 1000
            assert total <= math.ceil(allowed)  # of what came before the last one
            total += partitions
