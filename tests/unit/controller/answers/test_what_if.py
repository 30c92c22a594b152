"""A rehearsal asks before each part of what it would write whether it is to go on."""

from __future__ import annotations

import pytest

from quorate.controller.answers.can_stop import stop_brokers
from quorate.controller.answers.what_if import rehearsed
from quorate.controller.api.answers.answer_models import WhatIfStep
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.unit.controller.small_cluster import SmallCluster


class Patience:
    """Lets so many parts through."""

    def __init__(self, parts: int) -> None:
        self.left = parts

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "no more")


def test_rehearsal_ends_where_it_is_told_to() -> None:
    cluster = SmallCluster(4)
    cluster.create("a", [0, 1, 2])
    image, config = cluster.image, cluster.config
    steps = [WhatIfStep(event="stop", brokers=[0, 1]), WhatIfStep(event="crash", brokers=[2])]
    enough = Patience(100)
    rehearsed(image, config, steps, enough)
    needed = 100 - enough.left
    assert needed >= 3
    for parts in range(needed):
        with pytest.raises(ApiError, match="no more"):
            rehearsed(image, config, steps, Patience(parts))
    with pytest.raises(ApiError, match="no more"):
        stop_brokers(image, config, [0], check=Patience(0))
