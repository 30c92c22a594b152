"""Write docs/configuration.md from the settings classes: `python -m quorate.scripts.generate_configuration_docs`.

A test compares the file with what this makes, so that the reference cannot fall behind the program.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from quorate.broker.settings import BrokerSettings
from quorate.controller.api.attribute_docs import attribute_docs
from quorate.controller.process.settings import Address, ControllerSettings
from quorate.controller.process.settings_source import environment_name

PATH: Final = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

_INTRODUCTION: Final = """\
# Configuration

Made from the settings classes by `python -m quorate.scripts.generate_configuration_docs`; do not edit.

Every process reads its settings from these places, the later winning over the earlier:

1. the defaults below,
2. a TOML file: `--config FILE` (`group.name` is `name` in the table `[group]`),
3. the environment: the prefix below, then the name in capitals, with `__` between group and name,
4. the command line: `--set group.name=value`, as often as needed.

A name that means nothing is an error in all of them. Times end in `_ms` and are in milliseconds, sizes in `_bytes`.
"""

_SECTIONS: Final[tuple[tuple[str, type[BaseSettings], str], ...]] = (
    ("Controller", ControllerSettings, "quorate controller --config FILE"),
    ("Broker", BrokerSettings, "quorate broker --config FILE"),
)

#: Attributes of a field's limits, and how they are said.
_LIMITS: Final = {
    "ge": "≥",
    "gt": ">",
    "le": "≤",
    "lt": "<",
    "min_length": "at least",
    "max_length": "at most",
}


def make_text() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, settings, command in _SECTIONS:
        example = environment_name(settings, "logging.level")
        parts.append(f"\n## {title}\n\n`{command}`; in the environment `{example}` and so on.\n")
        parts.extend(_groups(settings, ""))
    return "".join(parts)


def _groups(model: type[BaseModel], prefix: str) -> Iterator[str]:
    plain = {name: field for name, field in model.model_fields.items() if _group(field) is None}
    yield "\n" + _table(model, plain, prefix)
    for name, field in plain.items():
        element = _element(field)
        if element is not None:
            place = f"`[[{prefix}{name}]]`, which follows all names outside of tables"
            yield f"\nEach of `{prefix}{name}` (in TOML an inline table, or {place}):\n\n"
            yield _table(element, element.model_fields, "")
    for name, field in model.model_fields.items():
        group = _group(field)
        if group is not None:
            yield f"\n### `{prefix}{name}`\n\n{_words(group.__doc__)}\n"
            yield from _groups(group, f"{prefix}{name}.")


def _table(model: type[BaseModel], fields: dict[str, FieldInfo], prefix: str) -> str:
    meanings = attribute_docs(model)
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in fields.items():
        meaning = _words(meanings.get(name)).replace("|", "\\|")
        rows.append(f"| `{prefix}{name}` | {_type(field)} | {_default(field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _words(text: str | None) -> str:
    assert text, "every setting and every group says what it is"
    return " ".join(text.split())


def _group(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _element(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a list of models is made of."""
    parts = get_args(field.annotation)
    return parts[0] if parts and isinstance(parts[0], type) and issubclass(parts[0], BaseModel) else None


def _type(field: FieldInfo) -> str:
    name = _type_name(field.annotation)
    limits = [
        f"{words} {getattr(limit, attribute)}"
        for attribute, words in _LIMITS.items()
        for limit in field.metadata
        if getattr(limit, attribute, None) is not None
    ]
    return f"{name}, {', '.join(limits)}" if limits else name


def _type_name(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(_type_name(part) for part in parts if part is not NoneType)
    if origin is Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin is tuple:
        return "list of tables" if isinstance(parts[0], type) and issubclass(parts[0], BaseModel) else "list"
    if kind is Address:
        return "host:port"
    names: dict[Any, str] = {int: "integer", bool: "boolean", str: "text", Path: "path", float: "number"}
    if kind in names:
        return names[kind]
    assert hasattr(kind, "__metadata__"), f"no name for settings of type {kind}"
    return _type_name(parts[0])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    assert field.default is not PydanticUndefined, "the default of a plain setting is a value"
    if field.default is None or field.default == ():
        return "unset"
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{field.default}`"


def main() -> None:
    """Write the file."""
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(make_text(), encoding="utf-8")
    sys.stdout.write(f"wrote {PATH}\n")


if __name__ == "__main__":
    main()
