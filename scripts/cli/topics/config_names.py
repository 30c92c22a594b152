"""Names of configs as they are typed: a slip is pointed out, whoever decides on the name."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final, NamedTuple

from quorate.controller.configs.broker_configs import BROKER_SHOWN
from quorate.controller.configs.group_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from quorate.controller.configs.topic_configs import TOPIC_CONFIGS
from quorate.controller.protocol.configs import ResourceTypeName


class _Known(NamedTuple):
    names: Collection[str]
    #: How much a name must be like one of them, 0 to 1, to be taken for a slip.
    likeness: float


#: Of topics and groups controllers refuse other names anyway. A broker may have configs of its plug-ins, and secrets,
#: which are not among those that are known: it must be a slip of a letter or two.
_KNOWN: Final[dict[ResourceTypeName, _Known]] = {
    "TOPIC": _Known(TOPIC_CONFIGS, 0.6),
    "BROKER": _Known(BROKER_SHOWN, 0.9),
    "GROUP": _Known(GROUP_CONFIGS, 0.6),
    "CLIENT_METRICS": _Known(CLIENT_METRICS_CONFIGS, 0.6),
}


def point_out_slips(kind: ResourceTypeName, names: Iterable[str]) -> None:
    """Say of each name that is not known, and like one that is, what may have been meant."""
    known = _KNOWN[kind]
    what = kind.lower().replace("_", " ")
    for name in dict.fromkeys(names):
        meant = [] if name in known.names else get_close_matches(name, known.names, 1, known.likeness)
        if meant:
            sys.stderr.write(f"quorate: no {what} config is known as {name}: did you mean {meant[0]}?\n")
