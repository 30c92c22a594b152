"""The rule by which a command knows its cluster.

`--context`, or else `--controllers` and `--dir`; then the same of the environment; then the context that is in use;
then the local cluster in `./var`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

from quorate.scripts.logins.cluster_variables import CONTROLLERS_VARIABLE, DIRECTORY_VARIABLE, REPLACED_VARIABLES
from quorate.scripts.logins.private_state import CONTEXTS_FILE, has_state

if TYPE_CHECKING:
    from quorate.scripts.logins.kept_contexts import KeptContexts

CONTEXT_OPTION: Final = "--context"
DIRECTORY_OPTION: Final = "--dir"
CONTROLLERS_OPTION: Final = "--controllers"
CONTEXT_VARIABLE: Final = "QUORATE_CONTEXT"


def chosen_environment(
    arguments: Sequence[str], environment: Mapping[str, str], contexts: Callable[[], KeptContexts | None]
) -> dict[str, str]:
    """The environment in which a command with these arguments knows its cluster.

    Args:
        contexts: reads those that are kept, where they matter; None: there are none.

    Raises:
        typer.BadParameter: two clusters are named. NoSuchContext. InvalidSettings: contexts cannot be read.
    """
    said = {option: _value(option, arguments) for option in (CONTEXT_OPTION, DIRECTORY_OPTION, CONTROLLERS_OPTION)}
    named = {name for name, value in environment.items() if value}
    if said[CONTEXT_OPTION] is not None:
        _refuse_another(CONTEXT_OPTION, [one for one in said if one != CONTEXT_OPTION and said[one] is not None])
        return _of_context(environment, _named(contexts(), str(said[CONTEXT_OPTION])))
    if said[DIRECTORY_OPTION] is not None or said[CONTROLLERS_OPTION] is not None:
        # What is said in the command goes before the environment: one that names a directory asks that cluster.
        changed = {name: value for name, value in environment.items() if name != CONTROLLERS_VARIABLE}
        return changed if said[DIRECTORY_OPTION] is None else changed | {DIRECTORY_VARIABLE: said[DIRECTORY_OPTION]}
    places = [name for name in (CONTROLLERS_VARIABLE, DIRECTORY_VARIABLE) if name in named]
    if CONTEXT_VARIABLE in named:
        _refuse_another(CONTEXT_VARIABLE, places)
        return _of_context(environment, _named(contexts(), environment[CONTEXT_VARIABLE]))
    kept = None if places else contexts()
    if kept is None or kept.current is None:
        return dict(environment)
    return _of_context(environment, _named(kept, kept.current))


def kept_contexts() -> KeptContexts | None:
    """The contexts; None: none are kept, and nobody waits for the libraries that read them.

    Raises:
        InvalidSettings: the file cannot be used.
    """
    if not has_state(CONTEXTS_FILE):
        return None
    from quorate.scripts.logins.kept_contexts import read_contexts

    return read_contexts()


def _named(kept: KeptContexts | None, name: str) -> Mapping[str, str]:
    if kept is None:
        from quorate.scripts.logins.kept_contexts import KeptContexts

        kept = KeptContexts()
    return kept.named(name).environment


def _value(option: str, arguments: Sequence[str]) -> str | None:
    """The value that a command's arguments give an option, the last one; None: none."""
    options = list(takewhile(lambda argument: argument != "--", arguments))
    found = [after for before, after in pairwise(options) if before == option]
    found += [one.partition("=")[2] for one in options if one.startswith(f"{option}=")]
    return found[-1] if found else None


def _refuse_another(name: str, others: Sequence[str]) -> None:
    if others:
        import typer

        raise typer.BadParameter(f"{name} and {others[0]} both say which cluster: name one of them")


def _of_context(environment: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in REPLACED_VARIABLES} | dict(said)
