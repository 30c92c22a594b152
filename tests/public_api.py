"""What programs may rely on: every name of the facades, with signatures and fields, as text.

`python -m tests.public_api` writes it anew, after a change that is meant; whoever reviews it sees what users see.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, ForwardRef, Literal, get_origin

from pydantic import BaseModel

from tests.architecture.test_imports import FACADES

FILE = Path(__file__).parent / "golden" / "public_api.txt"
#: Methods that brokers and controllers call: they follow Kafka's RPCs and the feed, and are promised to nobody else.
OF_BROKERS = frozenset({
    "allocate_producer_ids", "alter_partition", "alter_partition_columns", "assign_replicas_to_dirs",
    "broker_heartbeat", "digest_of", "feed_sessions", "fetch_batches", "fetch_checkpoint", "register_broker",
    "register_controller",
})  # fmt: skip
#: Classes that programs make by themselves; of others the constructor is ours.
MADE_BY_PROGRAMS = frozenset({"ControllerClient", "PasswordLogin", "ServiceReplicas", "TlsFiles", "TlsPaths"})
#: Handed on by whoever overrides ``ReplicaManager.begin``; its parts are ours.
OPAQUE = frozenset({"Station"})


def described() -> str:
    """The text, facade by facade."""
    return "\n".join(line for facade in FACADES for line in _facade(facade.removesuffix(".py")))


def _facade(name: str) -> Iterator[str]:
    module = importlib.import_module(f"quorate.{name}")
    yield f"quorate.{name}"
    for public in sorted(module.__all__):
        yield from (f"    {line}" for line in _thing(public, getattr(module, public)))
    yield ""


def _thing(name: str, thing: Any) -> list[str]:
    if inspect.isclass(thing) and thing.__module__ != "builtins":
        return _class(name, thing)
    if inspect.isroutine(thing):
        return [_signature(name, thing)]
    is_said = isinstance(thing, bool | int | float | str) or get_origin(thing) is Literal
    return [f"{name} = {thing!r}".replace("typing.", "") if is_said else name]


def _class(name: str, cls: type[Any]) -> list[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    lines = [f"class {name}({bases})"]
    if name in OPAQUE:
        return lines
    if issubclass(cls, Enum):
        return lines + [f"    {member.name} = {member.value!r}" for member in cls]
    ours = [one for one in cls.__mro__ if one.__module__.startswith("quorate.")]
    members: dict[str, str] = {}
    for one in reversed(ours):
        for field, annotation in vars(one).get("__annotations__", {}).items():
            text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
            members[field] = f"{field}: {text}{_default(cls, field)}"
        for method, value in vars(one).items():
            text = _member(name, method, value)
            if text is not None:
                members[method] = text
        members |= {attribute: text for attribute, text in _attributes(one) if attribute not in members}
    hidden = OF_BROKERS if name == "ControllerClient" else frozenset()
    return (
        lines
        + [f"    {text}" for key, text in members.items() if not key.startswith("_") and key not in hidden]
        + [f"    {text}" for key, text in members.items() if key == "__init__"]
    )


def _attributes(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield what a class sets on itself in its constructor: the name, and the type as far as it stands there."""
    constructor = vars(cls).get("__init__")
    if not inspect.isfunction(constructor) or constructor.__code__.co_filename.startswith("<"):
        return  # none of its own, or one that dataclass has made
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(constructor))).body
    assert isinstance(tree, ast.FunctionDef)
    given = {one.arg: one.annotation for one in (*tree.args.args, *tree.args.kwonlyargs) if one.annotation is not None}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            kind = node.annotation if isinstance(node, ast.AnnAssign) else None
            if isinstance(node.value, ast.Name):
                kind = kind or given.get(node.value.id)
            elif isinstance(node.value, ast.Call):
                kind = kind or node.value.func
            yield target.attr, f"{target.attr}: {ast.unparse(kind)}" if kind is not None else target.attr


def _default(cls: type[Any], field: str) -> str:
    if not issubclass(cls, BaseModel) or cls.model_fields[field].is_required():
        return ""
    return f" = {cls.model_fields[field].get_default(call_default_factory=True)!r}"


def _member(owner: str, name: str, value: Any) -> str | None:
    if isinstance(value, cached_property):
        return f"{name}: {inspect.signature(value.func).return_annotation}"
    if isinstance(value, property):
        return f"{name}: {inspect.signature(value.fget).return_annotation}" if value.fget else None
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not inspect.isfunction(function) or (name.startswith("_") and not _is_constructor(owner, name)):
        return None
    return _signature(name, function)


def _is_constructor(owner: str, name: str) -> bool:
    return name == "__init__" and owner in MADE_BY_PROGRAMS


def _signature(name: str, function: Any) -> str:
    prefix = "async " if inspect.iscoroutinefunction(function) else ""
    return prefix + name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))


if __name__ == "__main__":
    FILE.write_text(described(), encoding="utf-8")
