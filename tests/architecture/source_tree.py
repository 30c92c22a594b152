"""The source tree as data for the tests in this directory: modules, their syntax trees, what they import."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker", "controller", "metadata_log", "pipeline", "quorum", "scripts", "snapshots")
_PLACES = "|".join((*PACKAGES, "docs", "tests"))
#: A file of ours in backquotes, and what a page says of a name in it: `tests/unit/test_x.py::test_y`.
REFERENCE = re.compile(rf"`((?:{_PLACES})/[\w./-]+)(?:::(\w+))?`")
TYPE_ONLY = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@dataclass(frozen=True)
class Module:
    """One Python file; `name` is the dotted name, that of the package for an `__init__.py`."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.removeprefix("quorate.").partition(".")[0]

    def at(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


@cache
def modules(*packages: str) -> tuple[Module, ...]:
    """Return the modules of these top-level directories, in the order of their names."""
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(_module(path) for path in paths)


@cache
def _module(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "tests" else ("quorate", *parts)
    text = path.read_text(encoding="utf-8")
    return Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path, text, ast.parse(text))


def imports(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every imported name, dotted: both `a` and `a.b` for `from a import b`, for b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node, node.module
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def run_time_imports(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Yield as `imports` does, without those that only a type checker follows."""
    guarded = [node for node in ast.walk(tree) if isinstance(node, ast.If) and dotted(node.test) in TYPE_ONLY]
    unseen = {id(inner) for node in guarded for part in node.body for inner in ast.walk(part)}
    yield from ((node, name) for node, name in imports(tree) if id(node) not in unseen)


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression; an unnamed part (a call, an index) reads as `?`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def refuse(findings: Iterable[str], rule: str) -> None:
    """Fail with every finding on a line of its own, under the rule that they break."""
    lines = sorted(findings)
    assert not lines, "\n".join([rule, *lines])
