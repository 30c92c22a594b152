"""The grammar of all commands, as completion reads it, made of the commands themselves.

Its file is `scripts/terminal/completing/grammar.json`, which `quorate.scripts.generate_completion_grammar` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer.main

from quorate.controller.configs.broker_configs import BROKER_SHOWN
from quorate.controller.configs.group_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from quorate.controller.configs.topic_configs import TOPIC_CONFIGS
from quorate.scripts.cli.__main__ import command_summaries, make_app
from quorate.scripts.terminal.places.options import with_places


def grammar_text() -> str:
    """The text of the file: a line each."""
    configs = {
        "topic": sorted(TOPIC_CONFIGS),
        "broker": sorted(BROKER_SHOWN),
        "group": sorted(GROUP_CONFIGS),
        "client-metrics": sorted(CLIENT_METRICS_CONFIGS),
    }
    return f'{{"commands": {_lines(dict(_commands()))}, "configs": {_lines(configs)}}}\n'


def _commands() -> Iterator[tuple[str, Any]]:
    names = list(command_summaries())
    root = typer.main.get_command(make_app([]))
    yield "", _told(root, names)
    for name in names:
        made: Any = with_places(typer.main.get_command(make_app([name])))
        yield from _walked(made.commands[name], name)


def _walked(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    below = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    yield words, _told(command, list(below))
    for name, one in below.items():
        yield from _walked(one, f"{words} {name}")


def _told(command: Any, below: list[str]) -> dict[str, Any]:
    context = typer.Context(command)
    parameters = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    options = [one for one in parameters if one.param_type_name == "option"]
    return {
        "options": [
            ["/".join([*one.opts, *one.secondary_opts]), _value(one, context), one.multiple] for one in options
        ],
        "arguments": [[_value(one, context), one.nargs == -1] for one in parameters if one not in options],
        "below": below,
    }


def _value(parameter: Any, context: Any) -> list[str] | None:
    """Words, or a kind of names; none where a shell completes files, or nobody knows."""
    if getattr(parameter, "is_flag", False):
        return None
    return [item.value for item in parameter.shell_complete(context, "") if item.type == "plain" and item.value]


def _lines(told: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in told.items()) + "\n}"
