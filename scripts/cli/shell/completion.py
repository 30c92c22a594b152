"""`quorate completion`: the program for a shell by which it completes our commands.

It asks the command itself, with the line in its environment (``scripts.terminal.completing.answer``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

import typer


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
