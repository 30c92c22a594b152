"""The strings that follow a class's attributes, as documentation of those attributes.

Read from the source when somebody asks: pydantic's own way reads it at every import of every model.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise


def attribute_docs(cls: type) -> dict[str, str]:
    """Attribute name to what the class, or a base of it, says there; without those of which nothing is said."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        docs.update(_docs_of_module(base.__module__).get(base.__qualname__, {}))
    return docs


@cache
def _docs_of_module(name: str) -> dict[str, dict[str, str]]:
    """Of the classes at the module's top level; nothing for a module that has no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError):
        return {}
    return {node.name: dict(_docs_of_class(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docs_of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for attribute, after in pairwise(node.body):
        match attribute, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
