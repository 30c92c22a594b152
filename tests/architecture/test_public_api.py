"""What programs rely on stays as it is: a name that goes, or a signature that changes, is seen before they see it."""

import difflib

import pytest

from tests.public_api import FILE, described

_HOW = "if it is meant, write CHANGELOG.md and run `python -m tests.public_api`"


def test_public_names_signatures_and_fields_are_those_that_were_promised() -> None:
    promised, found = FILE.read_text(encoding="utf-8"), described()

    changed = difflib.unified_diff(promised.splitlines(), found.splitlines(), "promised", "found", n=0, lineterm="")

    assert found == promised, "\n".join([_HOW, *changed])


@pytest.mark.parametrize(
    "line",
    [
        "quorate.client",
        "    class ControllerClient()",
        "        async create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse",
        "        num_partitions: Int32 = -1",
        "        NOT_CONTROLLER = 41",
        "    class NotController(ApiError)",
        "        local_changes(self, broker: int) -> LocalChanges",
        "        state: Partition",
        "        controller: ControllerEpoch",
        "quorate.testing",
    ],
)
def test_description_has_a_line_for_each_kind_of_promise(line: str) -> None:
    """One that left a kind of thing out would never find it changed."""
    assert line in described().splitlines()


def test_methods_for_brokers_are_in_no_promise() -> None:
    assert "        async register_broker(" not in described()
    assert "        async unregister_broker(" in described()
