"""Rules of style that a program can hold: banned calls with what to use instead, debts, lengths, names, headings."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source_tree import PACKAGES, ROOT, Module, dotted, imports, modules, refuse

#: Where "all disk calls in one place" holds: what the simulation runs over its own disk.
ON_DISK = ("broker", "controller", "metadata_log", "quorum", "snapshots")
EVERYWHERE = (*PACKAGES, "tests")

FUNCTION_LINES_MAX = 50
FILE_LINES_MAX = 400
FOLDER_MODULES_MAX = 20
#: Longer than the limits, with the length they may have at most: it is lowered as they shrink, never raised.
LONG_FUNCTIONS: dict[str, int] = {}
LONG_FILES = {
    "quorate.metadata_log.records.records": 460,  # one dataclass a record type: a table
    "quorate.quorum.node": 470,
}


@dataclass(frozen=True)
class Ban:
    """A call that is refused; `calls` matches the dotted name as written, `?` standing for an unnamed part."""

    calls: str
    instead: str
    where: tuple[str, ...] = EVERYWHERE
    #: Modules that may, for they are the place where it is done.
    allowed: tuple[str, ...] = ()


BANS = (
    Ban(r"time\.sleep|sleep", "tests.waiting, or virtual time", ("tests",), ("tests.waiting",)),
    Ban(r"time\.sleep", "a timer of the event loop", PACKAGES),
    # The proxy is a slow link: it passes bytes at a pace, and nobody waits for it in place of a condition.
    Ban(r"asyncio\.sleep", "tests.waiting.eventually",
        ("tests",), ("tests.waiting", "tests.integration.swallowing_proxy")),
    # In tests the leak check watches over tasks; in the product the root of a process or a command, or a server, may
    # hold and await them.
    Ban(r"asyncio\.(create_task|ensure_future)|\?\.create_task|.*loop\.create_task", "a TaskGroup",
        PACKAGES, (
            "quorate.broker.host",
            "quorate.broker.worker",
            "quorate.broker.watcher",
            "quorate.controller.api.tls_entrance",
            "quorate.controller.http.express",
            "quorate.controller.process.server",
            "quorate.quorum.transport.transport",
            "quorate.scripts.benchmarks.programs.paced_process",
            "quorate.scripts.embedded.cluster",
            "quorate.scripts.terminal.asking",
        )),
    Ban(r"asyncio\.get_event_loop", "asyncio.get_running_loop"),
    Ban(r"os\.(fsync|fdatasync|rename|replace|unlink|remove|truncate|ftruncate|pread|pwrite)",
        "metadata_log.disk.Disk", ON_DISK, ("quorate.metadata_log.disk",)),
    Ban(r"(pickle|marshal|shelve)\..*", "msgpack, or Kafka's encoding: bytes from a peer must not run"),
    # Whose texts are names: they could hold markup, and what moves a terminal's cursor.
    Ban(r"(rich\.console\.)?Console", "scripts.terminal.screen.Screen",
        ("scripts",), ("quorate.scripts.benchmarks.__main__",)),
    Ban(r"os\.(system|popen)", "subprocess with a list of arguments"),
    Ban(r"random\.(seed|random|randint|randrange|randbytes|getrandbits|uniform|choices?|sample|shuffle)",
        "a random.Random made from a seed that a failure prints"),
    Ban(r"(random\.)?SystemRandom|uuid\.uuid[14]|os\.urandom|secrets\..*", "a seed: what tests draw is in the source",
        ("tests",)),
    # Its own way with patches: a Stage is an example of a property, and it replaces what nothing keeps.
    Ban(r"(pytest\.)?MonkeyPatch(\.context)?", "the fixture, or tests.guards.patching: they forget what caches keep",
        ("tests",), ("tests.guards.patching", "tests.property.controller_machine.stage")),
)  # fmt: skip


def banned_calls(module: Module, bans: Iterable[Ban] = BANS) -> Iterator[str]:
    """Yield a line for every refused call; `asyncio.sleep(0)`, which gives way and does not wait, is none."""
    applying = [ban for ban in bans if module.package in ban.where and module.name not in ban.allowed]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            called = dotted(node.func)
            for ban in applying:
                if re.fullmatch(ban.calls, called) and ast.unparse(node) != "asyncio.sleep(0)":
                    yield f"{module.at(node)} calls {called}: use {ban.instead}"


def functions(module: Module) -> Iterator[tuple[str, int]]:
    """Yield every function as `module.function` with its length in lines, decorators left out."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{module.name}.{node.name}", node.end_lineno - node.lineno + 1


def over_limit(lengths: Iterable[tuple[str, int]], limit: int, known: dict[str, int]) -> list[str]:
    """Return a line for what is longer than it may be, and for what is listed with more than it needs."""
    longest: dict[str, int] = {}
    for name, length in lengths:
        longest[name] = max(length, longest.get(name, 0))
    grown = [
        f"{name}: {length} lines, {known.get(name, limit)} allowed"
        for name, length in longest.items()
        if length > known.get(name, limit)
    ]
    loose = [f"{name}: take it off the list" for name in known if longest.get(name, 0) <= limit]
    return grown + loose


#: The licence's text is its authors'; ``.git`` is a file, with a path in it, where the checkout is a linked work tree.
_NOT_OURS = ("LICENSE", ".git")


@cache
def texts() -> dict[Path, str]:
    """Return the texts of the project by path: programs, documents, settings. Captured data are not ours."""
    kinds = {".py", ".md", ".toml", ".sh", ".yml", ".yaml", ".html", ".js", ".css", ""}
    places = [ROOT / name for name in (*EVERYWHERE, "docs", ".ci")]
    files = [path for place in places if place.is_dir() for path in place.rglob("*")] + list(ROOT.glob("*"))
    ours = [path for path in files if path.is_file() and path.suffix in kinds and path.name not in _NOT_OURS]
    data = ROOT / "tests" / "data" / "kafka"
    return {path: path.read_text(encoding="utf-8") for path in sorted(ours) if data not in path.parents}


def lines_matching(pattern: str, is_wrong: Callable[[str], bool] = bool) -> list[str]:
    this_file = Path(__file__)
    return [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if path != this_file and re.search(pattern, line) and is_wrong(line)
    ]


def headings(text: str) -> list[str]:
    """Return the titles of the first level; what looks like one inside a code block is none."""
    outside = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^# .*", outside, flags=re.MULTILINE)


def snippet(source: str, name: str = "quorum.example") -> Module:
    return Module(name, ROOT / "example.py", source, ast.parse(source))


def test_banned_calls_are_nowhere_in_the_tree() -> None:
    """Each ban says what to use."""
    refuse([line for module in modules(*EVERYWHERE) for line in banned_calls(module)], "banned calls")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("time.sleep(1)", "tests.unit.example"),
        ("await asyncio.sleep(0.1)", "tests.unit.example"),
        ("task = asyncio.create_task(work())", "broker.example"),
        ("asyncio.get_running_loop().create_task(work())", "broker.example"),
        ("self._loop.create_task(work())", "broker.example"),
        ("os.fsync(fd)", "quorum.example"),
        ("pickle.loads(data)", "quorum.example"),
        ("random.choice(nodes)", "scripts.example"),
        ("uuid.uuid4()", "tests.unit.example"),
        ("with pytest.MonkeyPatch.context() as patch: pass", "tests.unit.example"),
    ],
)
def test_banned_call_in_a_snippet_is_found(source: str, name: str) -> None:
    """The rules themselves are tested: one that matches nothing would never fail."""
    assert len(list(banned_calls(snippet(source, name)))) == 1


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("await asyncio.sleep(0)", "tests.unit.example"),
        ("group.create_task(work())", "broker.example"),
        ("os.fsync(fd)", "quorate.metadata_log.disk"),
        ("generator = random.Random(seed)", "scripts.example"),
    ],
)
def test_allowed_call_in_a_snippet_is_not_found(source: str, name: str) -> None:
    """The near neighbours of what is banned stay free."""
    assert list(banned_calls(snippet(source, name))) == []


def logged_errors(module: Module) -> Iterator[str]:
    """Yield the calls that hand an error to a log as it is."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and (
            any(one.arg == "exc_info" for one in node.keywords)
            or re.fullmatch(r"(.*\.)?(log|logger|logging)\.exception", dotted(node.func))
        ):
            yield module.at(node)


def test_errors_are_logged_as_text_without_the_values_of_variables() -> None:
    """The log of a program around us may show the variables of each frame: among them are keys and secrets."""
    refuse(
        (line for module in modules(*PACKAGES) for line in logged_errors(module)),
        "log exception=traceback_text(error), of metadata_log.tracebacks",
    )


@pytest.mark.parametrize("source", ['log.error("failed", exc_info=error)', 'self.log.exception("failed")'])
def test_error_that_is_logged_as_it_is_in_a_snippet_is_found(source: str) -> None:
    assert len(list(logged_errors(snippet(source)))) == 1


def test_mocks_are_imported_by_no_test() -> None:
    """What can run here is run; what cannot has a written twin (the disk, the clock, the network)."""
    mocks = [
        module.at(node)
        for module in modules("tests")
        for node, name in imports(module.tree)
        if name.startswith(("unittest.mock", "mock."))
    ]

    refuse(mocks, "use the real thing, or the simulation's")


def unseeded(module: Module) -> Iterator[str]:
    """Yield the generators that are made without a seed, so that each run has another."""
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    for call in calls:
        if dotted(call.func).rpartition(".")[2] in ("Random", "default_rng") and not (call.args or call.keywords):
            yield module.at(call)


def test_generators_of_tests_are_made_from_seeds() -> None:
    """The same code has the same verdict."""
    refuse((line for module in modules("tests") for line in unseeded(module)), "Random(seed): its draws are the same")


@pytest.mark.parametrize("source", ["Random()", "random.Random()", "np.random.default_rng()"])
def test_generator_without_a_seed_in_a_snippet_is_found(source: str) -> None:
    assert len(list(unseeded(snippet(source)))) == 1


def test_debts_in_comments_name_their_context() -> None:
    """`TODO(what it waits for): what is to do` can be found and judged; anything shorter is forgotten."""
    debts = lines_matching(r"\b(TODO|FIXME|XXX|HACK)\b", lambda line: not re.search(r"TODO\([^)]+\): \S", line))

    refuse(debts, "write TODO(context): what, or do it")


def test_texts_name_no_path_of_one_machine() -> None:
    """A path under somebody's home is true on one machine only."""
    refuse(lines_matching(r"(?<![\w.~$}-])/(home|root|work|Users)/\w"), "say where relative to the checkout")


def test_functions_stay_within_their_length() -> None:
    """A giant is a sign that a concept has no name yet."""
    lengths = [entry for module in modules(*EVERYWHERE) for entry in functions(module)]

    refuse(over_limit(lengths, FUNCTION_LINES_MAX, LONG_FUNCTIONS), "functions over their length")


def test_files_stay_within_their_length() -> None:
    """One file, one responsibility."""
    lengths = [(module.name, module.text.count("\n")) for module in modules(*EVERYWHERE)]

    refuse(over_limit(lengths, FILE_LINES_MAX, LONG_FILES), "files over their length")


def test_folders_hold_no_more_modules_than_are_seen_at_a_glance() -> None:
    """A folder that outgrows this has two subjects, and wants a room for one of them."""
    counts = Counter(module.path.parent for module in modules(*EVERYWHERE) if module.path.name != "__init__.py")

    refuse(
        (
            f"{folder.relative_to(ROOT)}: {count} modules"
            for folder, count in counts.items()
            if count > FOLDER_MODULES_MAX
        ),
        f"more than {FOLDER_MODULES_MAX} modules in a folder",
    )


def test_unit_tests_lie_where_what_they_test_lies() -> None:
    """From a file to its tests without a search."""
    unit = ROOT / "tests" / "unit"
    folders = {module.path.parent.relative_to(unit) for module in modules("tests") if unit in module.path.parents}

    refuse((str(folder) for folder in folders if not (ROOT / folder).is_dir()), "tests/unit has these, the product not")


def test_length_limit_names_the_grown_and_the_loose_entry() -> None:
    """A listed giant may not grow; one that shrank below the limit leaves the list."""
    lengths = [("a", 12), ("b", 30), ("c", 9), ("d", 25)]

    assert over_limit(lengths, 10, {"b": 30, "c": 20, "d": 20}) == [
        "a: 12 lines, 10 allowed",
        "d: 25 lines, 20 allowed",
        "c: take it off the list",
    ]


def test_names_of_tests_say_subject_situation_and_outcome() -> None:
    """test_<subject>_<situation>_<outcome>: a name of two words says none of it."""
    short = [
        f"{module.at(node)} {node.name}"
        for module in modules("tests")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") < 3
    ]

    refuse(short, "name the subject, the situation and the outcome")


def test_documents_have_one_title_each() -> None:
    """Two titles are two documents."""
    wrong = [
        f"{path.relative_to(ROOT)}: {len(headings(text))} titles"
        for path, text in texts().items()
        if path.suffix == ".md" and len(headings(text)) != 1
    ]

    refuse(wrong, "one line that begins with '# ' in each document")


def test_title_inside_a_code_block_is_not_counted() -> None:
    """A shell comment in an example is no heading."""
    assert headings("# Title\n\n```sh\n# a comment\n```\n\n## Part\n") == ["# Title"]
