"""Names of classes: one means one thing in the whole product, so that a reader who knows it knows it everywhere."""

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.architecture.source_tree import PACKAGES, Module, modules, refuse


def shared_class_names(given: Iterable[Module]) -> list[str]:
    """Return a line for each name that several top-level classes of these modules have, with their places."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in given:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.at(node))
    return [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]


def test_class_name_means_one_thing_in_the_whole_product() -> None:
    """A second class of a name says its subject, too: `FeedChunk`, `LogChunk`, `ChunkMessage`."""
    refuse(shared_class_names(modules(*PACKAGES)), "name one of them by its subject, or by the field's own term")


def test_class_name_in_two_modules_is_found() -> None:
    """Also where one of the two is private; classes inside of others have their own places."""
    one, two = modules("tests")[:2]
    trees = "class A: pass\nclass _B:\n    class C: pass", "class C: pass\nclass _B: pass"
    given = [
        Module(module.name, module.path, text, ast.parse(text)) for module, text in zip((one, two), trees, strict=True)
    ]

    assert [line.partition(":")[0] for line in shared_class_names(given)] == ["_B"]
