"""The outcomes of a request about several things, as people are told them."""

from __future__ import annotations

import pytest

from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.terminal.bulk import ItemOutcome, exit_by
from quorate.scripts.terminal.programs.failures import Failed


def test_empty_name_that_was_refused_is_shown() -> None:
    outcome = ItemOutcome("", ErrorCode.INVALID_TOPIC_EXCEPTION, "it is empty", "done")
    with pytest.raises(Failed) as refused:
        exit_by([outcome])
    assert refused.value.sentences == ("'': it is empty (INVALID_TOPIC_EXCEPTION)",)
