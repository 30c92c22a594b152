"""docs/security.md says of every route what whoever asks has to have, in the words of its row in the route table."""

from collections.abc import Sequence

import pytest

from quorate.broker.http.permissions import PERMISSIONS
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.permissions.permission import Permission
from tests.architecture.source_tree import ROOT, refuse

PAGE = ROOT / "docs" / "security.md"
OF_CONTROLLERS = [(route.method, route.path, route.permission) for route in ROUTES]
OF_BROKERS = [(*route, permission) for route, permission in PERMISSIONS.items()]


@pytest.mark.parametrize(
    ("heading", "routes"),
    [
        ("## What each route asks for", OF_CONTROLLERS),
        ("## What each route of a broker process asks for", OF_BROKERS),
    ],
)
def test_every_route_has_its_row_on_the_page_and_no_other_is_there(
    heading: str, routes: Sequence[tuple[str, str, Permission]]
) -> None:
    rows = [f"| `{method} {path}` | {permission.told} |" for method, path, permission in routes]
    table = PAGE.read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n## ")[0]
    page = [line for line in table.splitlines() if line.startswith("| `")]
    refuse((row for row in rows if row not in page), f"docs/security.md, {heading!r}: these rows are missing")
    refuse((row for row in page if row not in rows), f"docs/security.md, {heading!r}: no route is like this")
    assert page == rows, "the rows of docs/security.md are in the order of the route table"


def test_route_in_the_name_of_a_node_names_a_field_of_its_body() -> None:
    """What is compared with the node's proof must be there to be compared."""
    named = [route for route in ROUTES if route.path.partition("-rpc/")[1]]
    assert len(named) == 7
    refuse(
        (route.path for route in named if getattr(route.permission, "field", None) not in route.body.model_fields),
        "a request of a node is made as that node: AsNode(role, field)",
    )
