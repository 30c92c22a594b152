"""Logs captured from Apache Kafka 4.3.1, for the tour and for drills: they come with an installed package, too.

In a checkout the files are links into ``tests/data/kafka``, where all captures are, with what is known of them; a
package is built with what they point to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
#: 3,061 partitions; two of four brokers have crashed.
STATIC_M2: Final = _HERE / "static-m2"
#: A small cluster with a dynamic voter set.
DYNAMIC_SMALL_M1: Final = _HERE / "dynamic-small-m1"
