"""`quorate completion`: the program for a shell by which it completes our commands, and the answer to its question."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Final, NoReturn

import typer
import typer.main
from typer.completion import get_completion_inspect_parameters

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.places.chosen import chosen_environment
from quorate.scripts.terminal.places.options import own_environment, with_places

#: A line longer than this is nobody's.
_LINE_MAX: Final = 65_536


class Shell(StrEnum):
    """A shell that can be helped."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


#: What they are asked with is what they know anyway; nothing that comes back is run.
_PROGRAMS: Final[Mapping[Shell, str]] = {
    Shell.BASH: r"""# Completion of quorate for bash: eval "$(quorate completion bash)"
_quorate_completion() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(QUORATE_COMPLETE_LINE="${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[0]}" 2>/dev/null </dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    return 0
}
complete -o default -F _quorate_completion quorate
""",
    Shell.ZSH: r"""#compdef quorate
# Completion of quorate for zsh: eval "$(quorate completion zsh)", after compinit
_quorate_completion() {
    local -a found
    found=("${(@f)$(QUORATE_COMPLETE_LINE="${(j: :)words[1,CURRENT]}" "${words[1]}" 2>/dev/null </dev/null)}")
    found=(${found:#})
    if (( ${#found} )); then
        compadd -S '' -q -- ${(M)found:#*[=/]}
        compadd -- ${found:#*[=/]}
    else
        _files
    fi
}
compdef _quorate_completion quorate
""",
    Shell.FISH: r"""# Completion of quorate for fish: quorate completion fish | source
function __quorate_completion
    set -lx QUORATE_COMPLETE_LINE (commandline --cut-at-cursor --current-process | string collect)
    command quorate 2>/dev/null </dev/null
end
complete --command quorate --arguments '(__quorate_completion)'
""",
}


def completion(
    shell: Annotated[Shell, typer.Argument(help="For which shell.", show_default=False)],
) -> None:
    """Print what a shell needs to complete commands, options, and names that it asks the cluster for.

    Names of topics, ids of brokers and controllers, configs, drills and contexts: at most 100, of the cluster that the
    line is about (--dir, --context, --controllers). Who does not answer within 0.3 s is not waited for. Nothing is
    changed, and nobody is asked who would want a password.

    Examples:

      eval "$(quorate completion bash)"

      quorate completion fish | source
    """
    sys.stdout.write(_PROGRAMS[shell])


def answer(line: str, make_app: Callable[[list[str]], typer.Typer]) -> NoReturn:
    """Write the words that may stand at the end of a line, one each, and end the process; in silence whatever happens.

    Args:
        line: with the command's own name, up to the cursor. make_app: makes the application for arguments.
    """
    # Whatever is written there would stand in the line that somebody types.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    with own_environment():
        for word in words_for(line, make_app):
            sys.stdout.write(f"{word}\n")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    # An end in order waits for threads: one may look a host name up that no resolver answers for.
    os._exit(exit_codes.DONE)


def words_for(line: str, make_app: Callable[[list[str]], typer.Typer]) -> list[str]:
    """The words, of a line that may be anything."""
    import io
    from contextlib import redirect_stdout

    typed = _taken_apart(line)
    if not typed:
        return []
    before, incomplete = typed[1:-1], typed[-1]
    out = io.StringIO()
    # A mistake in the line is no matter of ours before it is run.
    with redirect_stdout(out), suppress(Exception, SystemExit):
        from quorate.scripts.logins.kept_contexts import read_contexts

        os.environ.update(chosen_environment(before, dict(os.environ), read_contexts))
        command = with_places(typer.main.get_command(make_app(before)))
        # Typer knows how to complete only where it has been asked for options of its own for that.
        get_completion_inspect_parameters()
        os.environ |= {
            "_QUORATE_COMPLETE": "complete_bash",
            "COMP_WORDS": shlex.join(["quorate", *before, incomplete]),
            "COMP_CWORD": str(len(before) + 1),
        }
        command([], prog_name="quorate", standalone_mode=False)
    return [word for word in out.getvalue().split("\n") if word]


def _taken_apart(line: str) -> list[str]:
    """The words of a line; the last is the one that is being typed, and may be empty. None where it is no line."""
    if len(line) > _LINE_MAX:
        return []
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token or "")  # within quotes, or behind a backslash
    else:
        if line[-1:].isspace():
            words.append("")
    return words if len(words) > 1 else []
