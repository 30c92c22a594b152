"""Docstrings: they begin with a statement, and say what is raised and which shape an array has."""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.source_tree import PACKAGES, Module, dotted, modules, refuse

#: The packages that others build on; in `scripts` an error ends a command, with the sentence that it has.
LIBRARIES = tuple(package for package in PACKAGES if package != "scripts")
#: Where arrays are handed from module to module.
ON_COLUMNS = ("broker", "controller", "metadata_log", "quorum", "snapshots")

_QUESTION = re.compile(r"(what|how|who|whom|whose|why|where|when|which)\b", re.IGNORECASE)
#: Says what is raised, or where that is said.
_RAISES = re.compile(r"raise|\b(See|As|as) ``", re.IGNORECASE)
_SHAPE = re.compile(r"\[[\w, +.]+\]|\b(See|As|as) ``")
_ARRAY = re.compile(r"\bnpt\.NDArray\b|\bNDArray\b")
#: Found by whoever made the mistake, and met by nobody who calls rightly.
_OF_THE_PROGRAM = frozenset({"AssertionError", "FatalFault", "InvariantViolation", "NotImplementedError"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | ast.ClassDef | _Function


def questions(module: Module) -> Iterator[str]:
    """Yield a line for every docstring that begins as an indirect question does."""
    for node in ast.walk(module.tree):
        if isinstance(node, _Documented):
            text = ast.get_docstring(node)
            if text is not None and _QUESTION.match(text):
                yield f"{module.path.name} {getattr(node, 'name', 'module')}: {text.splitlines()[0]}"


def public_functions(body: Iterable[ast.stmt]) -> Iterator[_Function]:
    """Yield the functions and methods that have no underscore in front, and that no class with one is around."""
    for node in body:
        if isinstance(node, ast.ClassDef | _Function) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from public_functions(node.body)
            else:
                yield node


def own_errors(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of the errors that are made and raised here: not in functions inside, nor those caught again."""
    for node in nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield dotted(node.exc.func).rpartition(".")[2]
        elif isinstance(node, ast.Try) and node.handlers:
            yield from own_errors([*node.handlers, *node.orelse, *node.finalbody])
        elif not isinstance(node, ast.ClassDef | _Function | ast.Lambda):
            yield from own_errors(ast.iter_child_nodes(node))


def unsaid_errors(module: Module) -> Iterator[str]:
    """Yield a line for every public function whose docstring is silent on an error that the function raises itself."""
    for function in public_functions(module.tree.body):
        text = ast.get_docstring(function)
        errors = {name for name in own_errors(function.body) if name[:1].isupper()} - _OF_THE_PROGRAM
        if text is not None and errors and not _RAISES.search(text):
            yield f"{module.at(function)} {function.name} raises {', '.join(sorted(errors))}"


def unsaid_shapes(module: Module, aliases: frozenset[str]) -> Iterator[str]:
    """Yield a line for every public function that returns an array and says no shape."""
    for function in public_functions(module.tree.body):
        text = ast.get_docstring(function)
        if text is None or function.returns is None or _SHAPE.search(text):
            continue
        returned = ast.unparse(function.returns)
        if _ARRAY.search(returned) or aliases & set(re.findall(r"\w+", returned)):
            yield f"{module.at(function)} {function.name} returns {returned}"


def array_aliases(given: Iterable[Module]) -> frozenset[str]:
    """Return the names of types that stand for arrays: `Rows = NDArray[np.int64]`."""
    return frozenset(
        node.targets[0].id
        for module in given
        for node in module.tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and _ARRAY.search(ast.unparse(node.value))
        and isinstance(node.value, ast.Subscript)
    )


def snippet(source: str) -> Module:
    """Return a module of this text in the place of one of ours, so that findings can name a line."""
    one = modules("tests")[0]
    return Module(one.name, one.path, source, ast.parse(source))


def test_docstrings_begin_with_a_statement() -> None:
    """`The position of a follower`, not `Where a follower stands`: a reader need not look for the question's answer."""
    refuse((line for module in modules(*PACKAGES) for line in questions(module)), "say what it is or does")


def test_public_functions_say_what_they_raise() -> None:
    """Whoever calls one has to know what to expect, without reading it."""
    refuse(
        (line for module in modules(*LIBRARIES) for line in unsaid_errors(module)),
        "add a `Raises:` section, or name the function that has it: See ``other``",
    )


def test_public_functions_say_the_shapes_of_arrays() -> None:
    """`bool[n]`, `int64[rows]`, `[width, n]`: the type says of which numbers, and nothing of how many."""
    given = modules(*ON_COLUMNS)
    aliases = array_aliases(given)

    refuse((line for module in given for line in unsaid_shapes(module, aliases)), "say the shape: int64[n]")


def test_indirect_question_is_found_and_a_predicate_is_not() -> None:
    """`Whether it leads` is how a boolean is described."""
    found = list(questions(snippet('"""Where it is."""\nclass A:\n    """Whether it is.\n\n    How so."""\n')))

    assert [line.partition(" ")[2] for line in found] == ["module: Where it is."]


def test_unsaid_error_is_found_unless_it_is_caught_or_of_an_inner_function() -> None:
    """A raise under a `try` with handlers is an answer to oneself."""
    says, silent = '"""Do.\n\n    Raises:\n        E: never.\n    """', '"""Do."""'
    inner = "def g() -> None:\n        raise E()"
    caught = "try:\n        raise E()\n    except E:\n        pass"
    bodies = [(says, "raise E()"), (silent, inner), (silent, caught), (silent, "raise AssertionError()")]

    for text, body in bodies:
        assert list(unsaid_errors(snippet(f"def f() -> None:\n    {text}\n    {body}\n"))) == []
    assert len(list(unsaid_errors(snippet(f"def f() -> None:\n    {silent}\n    raise E()\n")))) == 1


def test_unsaid_shape_is_found_also_behind_the_name_of_a_type() -> None:
    """The names are found, not listed."""
    module = snippet(
        'Rows = NDArray[np.int64]\ndef f() -> Rows:\n    """int64[n]: some."""\ndef g() -> Rows:\n    """All."""\n'
    )

    assert [line.split()[1] for line in unsaid_shapes(module, array_aliases([module]))] == ["g"]
