"""The order of sessions: Java's ``ConcurrentHashMap``, whose answers below were taken from a JVM."""

from __future__ import annotations

from quorate.controller.brokers.session_order import Session, SessionOrder

# fmt: off
PUT: list[tuple[int, int]] = [
    (11, 224), (6, -1), (10, 121), (11, 160), (8, -1), (5, 5867364831292889297), (8, 380), (3, -1), (8, 157),
    (1, 146), (3, 84), (11, -1), (9, 52), (10, 6540332603255121914), (4, 312), (3, 51), (3, 165), (9, 118), (1, 30),
    (7, 360), (9, 273), (4, -4492239922160839671), (6, 243), (9, -1), (1, 3374607806067294793), (11, 368), (4, 70),
    (4, 255), (3, 8105089516529875640), (7, 53), (4, 238), (6, 5197491548027125977), (0, -1), (9, 185), (9, 99),
    (2, 392), (4, -5213318117794079124), (1, 17), (2, 119), (7, -3107323726158618094), (8, 49),
    (2, -1225162137606176597), (5, 22), (6, 208), (1, -1), (0, 273), (8, 16), (9, 304), (10, 9028950564952219117),
    (7, 372), (10, 7732780429179850964),
]
#: What a JVM lists when every fourth of them has been removed again.
LISTED: list[tuple[int, int]] = [
    (8, 16), (6, 208), (9, 118), (7, 53), (3, 51), (0, 273), (9, -1), (6, 243), (2, -1225162137606176597),
    (10, 121), (1, 17), (1, 146), (3, 84), (5, 22), (4, 312), (2, 119), (6, -1), (1, 30), (10, 7732780429179850964),
    (5, 5867364831292889297), (7, -3107323726158618094), (7, 360), (4, 70), (11, 368), (2, 392), (9, 304), (7, 372),
    (9, 185), (11, -1), (3, -1), (4, 238), (8, 380), (4, -4492239922160839671), (11, 160),
    (10, 6540332603255121914), (6, 5197491548027125977), (9, 99), (4, 255),
]
# fmt: on


def order_of(*sessions: tuple[int, int]) -> list[Session]:
    order = SessionOrder()
    for broker_id, epoch in sessions:
        order.add(Session(broker_id, epoch))
    return list(order)


def test_order_few_sessions_is_by_bucket() -> None:
    listed = order_of(*[(3 * n, 10 + 17 * n) for n in range(8)])

    assert [session.broker_id for session in listed] == [15, 12, 9, 6, 3, 0, 21, 18]


def test_order_grown_table_splits_its_buckets_as_java_does() -> None:
    order = SessionOrder()
    for number in PUT:
        order.add(Session(*number))
    for number in PUT[::4]:
        order.remove(Session(*number))

    assert list(order) == LISTED
