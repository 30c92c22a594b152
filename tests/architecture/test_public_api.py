"""What programs rely on stays as it is: a name that goes, or a signature that changes, is seen before they see it."""

import ast
import difflib
import re

import pytest

from tests.architecture.source_tree import ROOT, imports
from tests.architecture.test_imports import FACADES
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


#: Not of programs on the public modules: an operator's own policies are loaded by a controller, and jobs are an extra.
OTHER_PAGES = {"pipeline.md", "policies.md"}


def pages() -> list[str]:
    """All that show Python to programs."""
    shown = [page.name for page in (ROOT / "docs").glob("*.md") if "```python\n" in page.read_text(encoding="utf-8")]
    return sorted(set(shown) - OTHER_PAGES)


@pytest.mark.parametrize("page", pages())
def test_programs_of_the_page_import_what_is_public(page: str) -> None:
    """What a page shows is copied: it must be a promise."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    imported = {name for block in blocks for _, name in imports(ast.parse(block)) if name.startswith("quorate.")}
    public = tuple(f"quorate.{facade.removesuffix('.py')}" for facade in FACADES)

    assert imported
    assert sorted(name for name in imported if not name.startswith(public)) == []


def test_methods_for_brokers_are_in_no_promise() -> None:
    assert "        async register_broker(" not in described()
    assert "        async unregister_broker(" in described()
