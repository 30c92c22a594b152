"""Options that several commands share: a dataclass of them is one parameter of each command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_type_hints


def command_of(function: Callable[..., None]) -> Callable[..., None]:
    """Return the command of a function: its own parameters first, then the options of its groups.

    A parameter whose type is a dataclass is a group: its fields are annotated as options of a command are, and the
    function gets an instance. No two options may have one name.
    """
    hints = get_type_hints(function, include_extras=True)
    names = inspect.signature(function).parameters
    groups = {name: hints[name] for name in names if inspect.isclass(hints[name]) and is_dataclass(hints[name])}
    parameters = [
        *_options(function, groups.keys()),
        *(option for group in groups.values() for option in _options(group)),
    ]

    @functools.wraps(function)
    def command(**values: Any) -> None:
        made = {
            name: group(**{option.name: values.pop(option.name) for option in _options(group)})
            for name, group in groups.items()
        }
        function(**made, **values)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del command.__wrapped__  # its signature is not the command's
    return command


def _options(described: Callable[..., Any], left_out: Any = ()) -> list[inspect.Parameter]:
    hints = get_type_hints(described, include_extras=True)
    return [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in inspect.signature(described).parameters.items()
        if name not in left_out
    ]
