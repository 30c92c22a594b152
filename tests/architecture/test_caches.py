"""Everything that a process keeps between calls is known to what empties it around patched code."""

import ast
from collections.abc import Iterator

import pytest

from quorate.scripts.simulation.process_caches import MEMOS, SHARED
from tests.architecture.source_tree import PACKAGES, ROOT, Module, dotted, modules, refuse

#: At a module's top level, changed while the program runs, and no memory of answers.
NO_MEMOS = {
    "quorate.controller.background.checkpoint_pace._QUICK",  # counts threads that want something now
    "quorate.scripts.cluster.ports._held",  # locks on ports, held until the process ends
    "quorate.scripts.simulation.process_caches._found",  # of modules, which stay what they are
}


def kept(module: Module) -> Iterator[str]:
    """Yield what a module begins with empty, to be filled: containers, and objects of its own private classes."""
    own = {node.name for node in module.tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("_")}
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_empty(node.value, own):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield f"{module.name}.{dotted(target)}"


def is_empty(value: ast.expr | None, own_classes: set[str]) -> bool:
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return isinstance(value, ast.Call) and dotted(value.func).endswith("defaultdict")
    kinds = {"dict", "list", "set", "deque", "Counter", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}
    return dotted(value.func).rpartition(".")[2] in kinds | {"ExitStack"} | own_classes


def hidden_caches(module: Module) -> Iterator[str]:
    """Yield functions that keep answers where nobody looks: below a module's top level."""
    top = {id(node) for node in module.tree.body}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and id(node) not in top:
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if dotted(called).rpartition(".")[2] in ("cache", "lru_cache"):
                    yield f"{module.at(node)}: {node.name}"


def test_everything_that_is_kept_is_listed_with_what_empties_it_or_is_no_memo() -> None:
    found = {name for module in modules(*PACKAGES) for name in kept(module)}
    memos = {f"{module}.{name}" for module, names in MEMOS.items() for name in names}

    refuse(found - memos - NO_MEMOS, "a memo is listed in process_caches.MEMOS; what is none, here")
    refuse((memos | NO_MEMOS) - found, "take it off the list")


def test_functions_that_keep_answers_stand_at_the_top_level() -> None:
    refuse((line for module in modules(*PACKAGES) for line in hidden_caches(module)), "its cache is found by no one")


def test_shared_functions_are_there() -> None:
    """A name that is there no more would exempt whatever takes it later."""
    text = "\n".join(module.text for module in modules("snapshots"))

    assert [name for name in SHARED if f"@cache\ndef {name.rpartition('.')[2]}(" not in text] == []


@pytest.mark.parametrize(
    "line",
    [
        "_SEEN = {}",
        "_SEEN: Final[dict[str, int]] = {}",
        "_LAST = _Last()",
        "_BY_NAME = defaultdict(list)",
        "_A = set()",
    ],
)
def test_what_is_kept_in_a_snippet_is_found(line: str) -> None:
    source = f"class _Last:\n    pass\n\n{line}\n"
    module = Module("quorate.quorum.example", ROOT / "example.py", source, ast.parse(source))

    assert len(list(kept(module))) == 1
