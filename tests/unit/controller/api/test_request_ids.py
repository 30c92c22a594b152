"""Names of requests: which ones of a client are taken, and what those that are made look like."""

import pytest

from quorate.controller.api.request_ids import request_id_of


@pytest.mark.parametrize("given", ["r1", "trace:7f.3_a-b", "x" * 64])
def test_proper_name_of_a_client_is_kept(given: str) -> None:
    assert request_id_of(given) == given


@pytest.mark.parametrize("given", ["", "a b", "r1\n", "<script>", "é", "x" * 65])
def test_improper_name_is_replaced_by_one_of_the_process(given: str) -> None:
    first, second = request_id_of(given), request_id_of(given)

    assert first[:8] == second[:8]
    assert first != second
    assert all(len(made) == 16 and int(made, 16) >= 0 for made in (first, second))
