"""Config values: types, and the checks that definitions are made of (Kafka's ``ConfigDef``).

Every refusal is an ``ApiError`` INVALID_CONFIG with Kafka's sentence, which names the value, the config and the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.config_texts import as_whole


class ConfigType(Enum):
    """Types of config values, with Kafka's names."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    LIST = "LIST"
    #: Never shown.
    PASSWORD = "PASSWORD"


#: By type: bool, int, float, str, or a tuple of str.
Value = Any
#: Refuses a value of the right type: (name of the config, value).
Check = Callable[[str, Value], None]

#: What Java's ``String.trim`` takes off.
_BLANKS: Final = "".join(map(chr, range(0x21)))
#: What Java's regular expressions call white space.
_SPACES: Final = " \t\n\v\f\r"
# Compiled when first used: a controller should start fast. Digits that were taken are not given back (`++`): a
# text of thousands of them with a wrong end would be tried in as many ways.
_DECIMAL: Final = r"([+-]?(?:NaN|Infinity|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?))[fFdD]?"
_HEXADECIMAL: Final = r"[+-]?0[xX](?:[\da-fA-F]++(?:\.[\da-fA-F]*+)?|\.[\da-fA-F]++)[pP][+-]?\d++[fFdD]?"
_WHOLE_BITS: Final = {ConfigType.INT: 32, ConfigType.LONG: 64}


def invalid_config(message: str) -> ApiError:
    """A refusal of configs."""
    return ApiError(ErrorCode.INVALID_CONFIG, message)


def invalid_value(name: str, value: Value, rule: str) -> ApiError:
    """A refusal of one value."""
    return invalid_config(f"Invalid value {_text(value)} for configuration {name}: {rule}")


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One config that Kafka knows."""

    name: str
    type: ConfigType
    #: As text; None = there is none.
    default: str | None
    check: Check | None = None
    #: Not shown to anybody who does not set it.
    is_internal: bool = False

    def parse(self, text: str) -> Value:
        """The value that a text means.

        Raises:
            ApiError: INVALID_CONFIG.
        """
        value = parse_value(self.name, self.type, text)
        if self.check is not None:
            self.check(self.name, value)
        return value


class ConfigDefinitions(dict[str, ConfigDefinition]):
    """All configs of one kind of resource, by name, in Kafka's order."""

    def __init__(self, definitions: Iterable[ConfigDefinition]) -> None:
        super().__init__((definition.name, definition) for definition in definitions)
        self._defaults: dict[str, Value] | None = None

    def parse(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """The values of all configs, defaults where ``texts`` has none. Of several that are wrong the one defined first
        is named.

        Raises:
            ApiError: INVALID_CONFIG.
        """
        if self._defaults is None:
            self._defaults = {
                name: None if one.default is None else one.parse(one.default) for name, one in self.items()
            }
        return self._defaults | {name: one.parse(texts[name]) for name, one in self.items() if name in texts}


def parse_value(name: str, type_: ConfigType, text: str) -> Value:
    """A text as a value of a type: blanks around it do not count, and nothing else is forgiven.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    trimmed = text.strip(_BLANKS)
    if type_ is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise invalid_value(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if type_ is ConfigType.LIST:
        return list_items(trimmed) if trimmed else ()
    if type_ is ConfigType.DOUBLE:
        number = _as_double(trimmed)
    else:
        bits = _WHOLE_BITS.get(type_)
        if bits is None:
            return trimmed
        number = as_whole(trimmed, bits)
    if number is None:
        raise invalid_value(name, text, f"Not a number of type {type_.value}")
    return number


def list_items(text: str) -> tuple[str, ...]:
    """The items between commas and the white space around them; ``text`` has none around it."""
    return tuple(item.strip(_SPACES) for item in text.split(","))


def _as_double(text: str) -> float | None:
    if form := re.fullmatch(_DECIMAL, text, re.ASCII):
        return float(form[1])
    if re.fullmatch(_HEXADECIMAL, text, re.ASCII):
        try:
            return float.fromhex(text.rstrip("fFdD"))
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    return None


def _text(value: Value) -> str:
    """A value as Java writes it into a sentence."""
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(1, 17):
        shorter = f"{value:.{precision}e}"
        if float(shorter) == value:
            digits, _, exponent = shorter.partition("e")
            break
    return f"{digits}E{int(exponent)}"


# --- checks ------------------------------------------------------------------------------------------


def within(low: float, high: float | None = None) -> Check:
    """A number not under ``low``, and not over ``high``."""

    def check(name: str, value: Value) -> None:
        if value < low:
            raise invalid_value(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid_value(name, value, f"Value must be no more than {high}")

    return check


def within_or(low: int, high: int, other: int) -> Check:
    """A number of a range, or one that stands outside of it."""

    def check(name: str, value: Value) -> None:
        if not low <= value <= high and value != other:
            raise invalid_value(name, value, f"Value must be between {low} and {high} or equal to {other}")

    return check


def one_of(*choices: str) -> Check:
    """One of some words, exactly as they are written."""

    def check(name: str, value: Value) -> None:
        if value not in choices:
            raise invalid_value(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def no_empty_items(name: str, value: Value) -> None:
    """A list without an empty item; it may be empty itself, and items may repeat."""
    if "" in value:
        raise invalid_config(f"Configuration '{name}' values must not be empty.")


def each_of(*choices: str) -> Check:
    """A list of some words. It may be empty, and words may repeat."""
    check_item = one_of(*choices)

    def check(name: str, value: Value) -> None:
        for item in value:
            no_empty_items(name, (item,))
            check_item(name, item)

    return check
