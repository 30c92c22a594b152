"""What programs rely on stays as it is: a name that goes, or a signature that changes, is seen before they see it."""

import ast
import difflib
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import pytest

from tests.architecture.source_tree import ROOT, imports, refuse
from tests.architecture.test_imports import FACADES
from tests.public_api import FILE, MADE_BY_PROGRAMS, OF_BROKERS, OPAQUE, described

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
        "        labels: LabelClient",
        "        code: ErrorCode",
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


def mentioned() -> Iterator[tuple[str, type]]:
    """Yield each class of ours that a public signature, field or base names, and where."""
    for facade in FACADES:
        module = importlib.import_module(f"quorate.{facade.removesuffix('.py')}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and name not in OPAQUE:
                yield from ((name, base) for base in thing.__mro__[1:])
                yield from _in_class(name, thing)
            elif inspect.isfunction(thing):
                yield from ((name, one) for hint in get_type_hints(inspect.unwrap(thing)).values() for one in _in(hint))


def _in_class(name: str, cls: type) -> Iterator[tuple[str, type]]:
    hidden = OF_BROKERS if name == "ControllerClient" else frozenset[str]()
    for one in cls.__mro__:
        if not one.__module__.startswith("quorate."):
            continue
        hints = {"": get_type_hints(one)}
        for member, value in list(vars(one).items()):
            function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            is_shown = not member.startswith("_") or (member == "__init__" and name in MADE_BY_PROGRAMS)
            if inspect.isfunction(function) and is_shown and member not in hidden:
                hints[member] = get_type_hints(function)
        for member, found in hints.items():
            for field, hint in found.items():
                if member or not field.startswith("_"):
                    yield from ((f"{name}.{member or field}", inner) for inner in _in(hint))


def _in(hint: Any) -> Iterator[type]:
    """Yield the classes in a type, whatever stands around them."""
    if isinstance(hint, TypeVar):
        yield from _in(hint.__bound__)
    for argument in hint if isinstance(hint, list | tuple) else get_args(hint):
        yield from _in(argument)
    origin = get_origin(hint) or hint
    if inspect.isclass(origin):
        yield origin


def test_names_in_public_signatures_are_public_too() -> None:
    """Or a program could not write down what it is given."""
    public = {
        id(getattr(module, name))
        for module in (importlib.import_module(f"quorate.{facade.removesuffix('.py')}") for facade in FACADES)
        for name in module.__all__
    }
    ours = {(where, one) for where, one in mentioned() if one.__module__.startswith("quorate.")}

    assert len(ours) > 100
    refuse((f"{where}: {one.__module__}.{one.__name__}" for where, one in ours if id(one) not in public), "export it")
