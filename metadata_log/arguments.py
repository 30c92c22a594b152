"""Arguments of public calls: what is of another type than the signature says is refused at the call, by name.

Python would go on with it, and fail somewhere inside.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from quorate.metadata_log.errors import InvalidArgument

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type[Any])

#: As which numbers count that are none of Python's own, as numpy's.
_NUMBERS: Final[Mapping[type, type]] = {int: Integral, float: Real}


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """A function that raises ``InvalidArgument`` for what its annotations do not allow, and is called otherwise."""
    rules = _Rules(function)
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def wait(*given: Any, **named: Any) -> Any:
            rules.check(given, named)
            return await function(*given, **named)

        return cast("Callable[P, R]", wait)

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> R:
        rules.check(given, named)
        return function(*given, **named)

    return call


def checked_calls(cls: C) -> C:
    """A class whose constructor and public methods are checked as by ``checked_call``."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked_call(member))
    return cls


class _Rules:
    """The annotations of one function, looked at when it is called for the first time: what they name is there then."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(self._function)
        except NameError:  # one of them is there for type checkers alone
            return {}

    def check(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        try:
            arguments = self._signature.bind(*given, **named).arguments
        except TypeError:
            return  # too many, too few, unknown: the call itself says so
        for name, value in arguments.items():
            hint = self._hints.get(name, Any)
            kind = self._signature.parameters[name].kind
            values = value.values() if kind is inspect.Parameter.VAR_KEYWORD else [value]
            wrong = [one for one in values if not _fits(one, hint)]
            if wrong:
                where = self._function.__qualname__.removesuffix(".__init__")
                # The value itself may be a secret.
                raise InvalidArgument(f"{where}: {name} must be {_said(hint)}, not {_kind_of(wrong[0])}")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None:
        return _is_a(value, NoneType if hint is None else hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Annotated:
        return _fits(value, parts[0])
    if origin is Literal:
        return any(
            isinstance(value, type(part)) for part in parts
        )  # which of them there are is the controllers' to say
    if not isinstance(value, origin) or isinstance(value, str | bytes):
        return False
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(key, parts[0]) and _fits(one, parts[1]) for key, one in value.items())
    if isinstance(value, Collection) and issubclass(origin, Iterable) and len(parts) == 1:
        return all(_fits(one, parts[0]) for one in value)
    return True


def _is_a(value: Any, hint: Any) -> bool:
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True  # anything, or what nobody can look at
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    return isinstance(value, hint)


def _said(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None:
        return "None" if hint in (None, NoneType) else getattr(hint, "__name__", str(hint))
    if origin in (Union, UnionType):
        return " or ".join(map(_said, parts))
    if origin is Annotated:
        return _said(parts[0])
    if origin is Literal:
        return " or ".join(sorted({type(part).__name__ for part in parts}))
    if origin is Callable:
        return "a function"
    inner = [part for part in parts if part is not Ellipsis]
    return f"{origin.__name__} of {' and '.join(map(_said, inner))}" if inner else origin.__name__


def _kind_of(value: Any) -> str:
    """The type of a value, and of what is in it."""
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    kind = type(value).__name__
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        return kind
    inner = sorted({type(one).__name__ for one in (value.values() if isinstance(value, Mapping) else value)})
    return f"{kind} of {' and '.join(inner)}" if inner else kind
