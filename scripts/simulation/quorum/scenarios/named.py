"""All named scenarios in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.scripts.simulation.quorum.scenarios.agreement import AGREEMENT_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.clock import CLOCK_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.disk import DISK_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.hang import HANG_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.leader import LEADER_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.log import LOG_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.memory import MEMORY_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.minority import MINORITY_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.network import NETWORK_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.size import SIZE_SCENARIOS
from quorate.scripts.simulation.quorum.scenarios.transfer import TRANSFER_SCENARIOS

SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    **AGREEMENT_SCENARIOS,
    **DISK_SCENARIOS,
    **LOG_SCENARIOS,
    **MEMORY_SCENARIOS,
    **MINORITY_SCENARIOS,
    **LEADER_SCENARIOS,
    **NETWORK_SCENARIOS,
    **CLOCK_SCENARIOS,
    **HANG_SCENARIOS,
    **TRANSFER_SCENARIOS,
    **SIZE_SCENARIOS,
}
