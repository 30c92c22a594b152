"""A default stands once, in the settings: what the programs fill from a setting has no default of its own."""

import ast
import dataclasses
import importlib
from collections.abc import Iterator

from tests.architecture.source_tree import PACKAGES, Module, modules, refuse

#: Where settings become what parts are told. Each must be seen to fill the classes named, or nothing is held.
FILLED = {
    "quorate.broker.assembly": {"ExchangeTiming"},
    "quorate.broker.host": {"LifecycleTiming", "LoaderTiming"},
    "quorate.controller.process.quorum_parts": {"QuorumConfig", "QuorumLimits", "QuorumTiming", "RetentionConfig"},
    "quorate.controller.process.settings_parts": {
        "CheckpointLimits", "ControllerConfig", "ControllerLimits", "ControllerParts", "FeedLimits", "LogConfig",
        "NodeLimits", "RoleSettings", "TokenConfig",
    },
}  # fmt: skip
#: Names under which settings, or a group of them, are at hand there.
SETTINGS = {"settings", "topics"}


def filled_fields(module: Module) -> Iterator[tuple[ast.expr, type, dataclasses.Field[object]]]:
    """Where a dataclass is made: the values that name a setting, each with class and field."""
    names = vars(importlib.import_module(module.name))
    for call in ast.walk(module.tree):
        made = names.get(call.func.id) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None
        if isinstance(call, ast.Call) and isinstance(made, type) and dataclasses.is_dataclass(made):
            fields = {field.name: field for field in dataclasses.fields(made)}
            values = [*zip(fields, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
            yield from ((value, made, fields[name]) for name, value in values if name and names_a_setting(value))


def names_a_setting(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in SETTINGS for node in ast.walk(value))


def test_what_is_filled_from_a_setting_has_no_default() -> None:
    seen: dict[str, set[str]] = {}
    wrong = []
    for module in modules(*PACKAGES):
        if module.name in FILLED:
            for value, made, field in filled_fields(module):
                seen.setdefault(module.name, set()).add(made.__name__)
                if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING:
                    wrong.append(f"{module.at(value)}: {made.__name__}.{field.name}")
    assert seen == FILLED
    refuse(wrong, "filled from a setting, which has the default: take it away from the field")
