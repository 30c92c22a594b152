"""The rate of new connections (KIP-612): of each address by the quotas in the log, and of all by a setting.

As for mutations, whoever is in debt is refused, and what is refused is not counted. An address counts first, so that
one that is refused takes nothing of what all have together.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

from quorate.controller.quotas.entities import CONNECTION_RATE, IP
from quorate.controller.quotas.token_bucket import TokenBucket
from quorate.metadata_log.errors import Overloaded
from quorate.snapshots.image.image_parts import ClientQuotasImage

#: Addresses whose rates are known at once. Above it the one that came least recently begins with a full bucket again.
ADDRESSES_MAX: Final = 10_000


class ConnectionRates:
    """Of one server. Times in milliseconds of one clock."""

    def __init__(self, burst_seconds: float, per_second_max: int) -> None:
        """``burst_seconds``: what so many seconds give may come at once. ``per_second_max``: of all; 0: any number."""
        self._burst_seconds = burst_seconds
        self._per_second_max = per_second_max
        self._all = TokenBucket(per_second_max * burst_seconds, 0.0)
        self._of_address: OrderedDict[str, TokenBucket] = OrderedDict()
        self._quotas = ClientQuotasImage()
        #: By address; None: of every other one.
        self._rates: dict[str | None, float] = {}

    def admit(self, address: str, quotas: ClientQuotasImage, now_ms: float) -> None:
        """Count one more connection.

        Raises:
            Overloaded: there were too many before.
        """
        if quotas is not self._quotas:
            self._quotas, self._rates = quotas, _rates_by_address(quotas)
        rate = self._rates.get(address, self._rates.get(None)) if self._rates else None
        bucket = None if rate is None else self._bucket(address, rate, now_ms)
        if rate is not None and bucket is not None and bucket.tokens(rate, rate * self._burst_seconds, now_ms) < 0:
            message = f"{CONNECTION_RATE} is {rate:g} connections a second from {address}: keep those you have"
            raise Overloaded(message, CONNECTION_RATE)
        most = self._per_second_max
        if most:
            if self._all.tokens(most, most * self._burst_seconds, now_ms) < 0:
                message = f"http.connections_per_second_max is {most} connections a second: try again"
                raise Overloaded(message, "connections_per_second_max")
            self._all.spend(1)
        if bucket is not None:
            bucket.spend(1)

    def _bucket(self, address: str, rate: float, now_ms: float) -> TokenBucket:
        bucket = self._of_address.get(address)
        if bucket is None:
            bucket = self._of_address[address] = TokenBucket(rate * self._burst_seconds, now_ms)
            if len(self._of_address) > ADDRESSES_MAX:
                self._of_address.popitem(last=False)
        else:
            self._of_address.move_to_end(address)
        return bucket


def _rates_by_address(quotas: ClientQuotasImage) -> dict[str | None, float]:
    """Addresses in their usual form. A host's name is none: who connects is known by his address."""
    rates: dict[str | None, float] = {}
    for entity, values in quotas.entities.items():
        rate = values.get(CONNECTION_RATE)
        if rate is None or entity[0].entity_type != IP:
            continue
        name = entity[0].entity_name
        try:
            rates[None if name is None else str(ipaddress.ip_address(name))] = rate
        except ValueError:
            continue
    return rates
