"""No regular expression takes more than linear time, whatever the text: what comes from outside stops the loop."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pytest

from tests.architecture.pattern_automaton import Automaton
from tests.architecture.source_tree import PACKAGES, ROOT, Module, dotted, modules, refuse

#: Methods that look at one place of a text; the others look for one.
_AT_ONE_PLACE = frozenset({"fullmatch", "match"})
_METHODS = _AT_ONE_PLACE | {"search", "split", "findall", "finditer", "sub", "subn"}
#: Modules whose patterns are made, and of what.
MADE = {
    "quorate.controller.principals.java_patterns": "the mapping rules of the settings",
    "quorate.controller.process.image_answers": "the paths of the route table",
}


@dataclass(frozen=True)
class Use:
    """A pattern, and all that is done with it."""

    at: str
    pattern: str | bytes
    flags: int
    methods: frozenset[str]


def patterns(module: Module) -> Iterator[Use | str]:
    """Yield every pattern, or a sentence where it does not stand in the module."""
    constants = _constants(module.tree)
    for call in _calls(module.tree):
        called = dotted(call.func)
        if called.removeprefix("re.") not in _METHODS | {"compile"} or not called.startswith("re."):
            continue
        given = call.args[0]
        value = constants.get(given.id) if isinstance(given, ast.Name) else _constant(given)
        if value is None and module.name in MADE:
            continue
        if value is None:
            yield f"{module.at(call)} {ast.unparse(given)}: a pattern is written down where it is used"
            continue
        name = called.removeprefix("re.")
        methods = frozenset(_methods_of(call, module)) if name == "compile" else frozenset({name})
        yield Use(module.at(call), value, _flags(call), methods)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _constants(tree: ast.Module) -> dict[str, str | bytes]:
    assigned = (node for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
    values = ((node.target.id, _constant(node.value)) for node in assigned)  # type: ignore[union-attr]
    return {name: value for name, value in values if value is not None}


def _constant(node: ast.expr | None) -> str | bytes | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) else None


def _flags(call: ast.Call) -> int:
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    said = [node for part in given for node in ast.walk(part) if isinstance(node, ast.Attribute)]
    names = [node.attr for node in said if dotted(node).startswith("re.")]
    return reduce(lambda flags, name: flags | getattr(re, name), names, 0)


def _methods_of(call: ast.Call, module: Module) -> Iterator[str]:
    """What is done with a compiled pattern, in its module and in those that import it."""
    named = [node for node in module.tree.body if isinstance(node, ast.AnnAssign) and node.value is call]
    if not named:
        return
    name = ast.unparse(named[0].target)
    for other in (module, *modules(*PACKAGES)):
        if other is module or (not name.startswith("_") and name in other.text):
            methods = [one.func for one in _calls(other.tree) if isinstance(one.func, ast.Attribute)]
            yield from (method.attr for method in methods if dotted(method.value) == name)


def problems(use: Use | str) -> Iterator[str]:
    """Yield why a pattern may be slow."""
    if isinstance(use, str):
        yield use
        return
    # One that is handed on may be used in any way.
    is_searched = not use.methods or not use.methods <= _AT_ONE_PLACE
    is_whole = use.methods == {"fullmatch"}
    for place in Automaton(use.pattern, use.flags, is_searched=is_searched, is_whole=is_whole).slow_places():
        yield f"{use.at} {use.pattern!r}: {place}"


def test_patterns_are_linear() -> None:
    found = (
        line
        for module in modules(*PACKAGES)
        if "re." in module.text
        for use in patterns(module)
        for line in problems(use)
    )
    refuse(found, "A pattern takes linear time: `+` and `*` that share letters are possessive (`++`, `*+`)")


@pytest.mark.parametrize(
    ("use", "is_linear"),
    [
        (r're.fullmatch(r"\d+\.?\d*", text)', False),
        (r're.fullmatch(r"\d++(?:\.\d*+)?", text)', True),
        (r're.fullmatch(r"[a-z]*[ a-z]*", text)', False),
        (r're.fullmatch(r"[a-z]*:[a-z]*", text)', True),
        (r're.fullmatch(r"(a+)+b", text)', False),
        (r're.fullmatch(r"(a|b|ab)*c", text)', False),
        (r're.fullmatch(r"(a?)*b", text)', False),
        (r're.fullmatch(r"a*[B-C]*", text, re.IGNORECASE)', True),
        (r're.fullmatch(r"a*[A-C]*", text, re.IGNORECASE)', False),
        (r're.split(r"\s*,\s*", text)', False),
        (r're.search(r" +$", text)', False),
        (r're.findall(r"\d+", text)', True),
        (r're.search(r"^\w+:", text)', True),
        (r're.search(r"\w+:", text)', False),
        (r're.search(r"(?m)^\w+:", text)', True),
        (r're.fullmatch(r"(.*) (.*)", text)', False),
        (r're.match(r"(.*) (.*)", text)', True),
        ('A: Final = re.compile(" *,")\nA.search(text)', False),
        ('A: Final = re.compile(" *,")\nA.match(text)', True),
        ('A: Final = " *,"\nre.search(A, text)', False),
        ("re.match(made, text)", False),
    ],
)
def test_rule_tells_slow_patterns(use: str, *, is_linear: bool) -> None:
    module = Module("quorate.x", ROOT / "x.py", use, ast.parse(use))
    found = [line for pattern in patterns(module) for line in problems(pattern)]
    assert (found == []) == is_linear, found
