"""What documents say of the tree is so: files, functions and tests that they name exist, and links lead somewhere."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from quorate.scripts.cli.clusters.up_cluster import BASE_PORT, CONTROLLERS
from tests.architecture.source_tree import PACKAGES, REFERENCE, ROOT, refuse

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GLOSSARY = ROOT / "docs" / "glossary.md"
DECISIONS = ROOT / "docs" / "decisions"
#: The parts of a page about a decision; measured figures are there where a benchmark prints some.
_PARTS = ["Context", "Decision", "Rejected", "Consequences"]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of the functions, classes, methods and constants of a module."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


def missing(text: str) -> Iterator[str]:
    """A line for every reference that leads nowhere."""
    for number, line in enumerate(text.splitlines(), start=1):
        for path, name in REFERENCE.findall(line):
            place = ROOT / path
            if not place.exists():
                yield f"line {number}: there is no {path}"
            elif name and (place.suffix != ".py" or name not in names_in(place)):
                yield f"line {number}: {path} has no {name}"


def anchors(text: str) -> set[str]:
    """What links can name within a page: its headings as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)", _CODE_BLOCK.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path, text: str) -> Iterator[str]:
    """Links to files of ours, and to headings in them, that lead nowhere; those to elsewhere are not looked at."""
    for target in _LINK.findall(_CODE_BLOCK.sub("", text)):
        name, _, anchor = target.partition("#")
        place = page.parent / name if name else page
        if "://" in target:
            continue
        if not place.exists():
            yield f"{page.relative_to(ROOT)}: there is no {target}"
        elif anchor and anchor not in anchors(text if place == page else place.read_text(encoding="utf-8")):
            yield f"{page.relative_to(ROOT)}: {name or 'the page'} has no heading #{anchor}"


def terms(text: str) -> list[tuple[str, str]]:
    """Each term of the glossary with what stands in its last column."""
    table = text[text.index("| term |") : text.index("## Checkpoint and snapshot")]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [(row.split(" | ")[0].removeprefix("| "), row.rsplit(" | ", 1)[1]) for row in rows]


def wrong_decision(number: int, text: str) -> str | None:
    """What a page about a decision lacks; None if it is whole."""
    if not text.startswith(f"# {number}. "):
        return f"its title does not begin with {number}."
    if not re.search(r"^Date: 20\d\d-\d\d-\d\d", text, flags=re.MULTILINE):
        return "it has no date"
    parts = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    if parts not in (_PARTS, [*_PARTS, "Measured"]):
        return f"its parts are {parts}"
    lines = text.count("\n")
    return None if 15 <= lines <= 40 else f"it has {lines} lines"


def test_files_functions_and_tests_that_pages_name_exist() -> None:
    dead = [f"{page.relative_to(ROOT)} {line}" for page in PAGES for line in missing(page.read_text(encoding="utf-8"))]

    refuse(dead, "references that lead nowhere")


def test_addresses_that_pages_and_commands_name_are_of_http_ports() -> None:
    """Ports of `quorate up` alternate: each controller's for the quorum, then the one of its HTTP API."""
    places = [*PAGES, *(ROOT / "scripts" / "cli").rglob("*.py")]
    wrong = [
        f"{place.relative_to(ROOT)}: {found[0]} is a port of the quorum"
        for place in places
        for found in re.finditer(r"(?:127\.0\.0\.1|localhost):(\d+)", place.read_text(encoding="utf-8"))
        if BASE_PORT <= int(found[1]) < BASE_PORT + 2 * CONTROLLERS and (int(found[1]) - BASE_PORT) % 2 == 0
    ]

    refuse(wrong, "addresses where no HTTP API is")


def test_option_that_is_given_again_for_each_value_is_written_so() -> None:
    wrong = re.compile(r"--[a-z][a-z-]* [A-Z][A-Z_]*\.\.\.")
    found = [f"{page.relative_to(ROOT)}: {one}" for page in PAGES for one in wrong.findall(page.read_text("utf-8"))]
    refuse(found, "Only arguments take several values behind one another: [--from PATH]...")


def test_links_between_pages_lead_somewhere() -> None:
    dead = [line for page in PAGES for line in dead_links(page, page.read_text(encoding="utf-8"))]

    refuse(dead, "links that lead nowhere")


def test_glossary_is_sorted_and_says_of_every_term_where_it_lives() -> None:
    entries = terms(GLOSSARY.read_text(encoding="utf-8"))
    names = [term for term, _ in entries]

    assert len(names) > 100
    assert names == sorted(names, key=str.casefold)
    refuse((term for term, code in entries if not REFERENCE.search(code)), "terms of docs/glossary.md without a module")


def test_rows_of_where_name_a_file_of_the_product_and_a_test() -> None:
    """That the files, and the names in them, are there holds for every page."""
    page = (ROOT / "docs" / "where.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")][1:]

    assert len(rows) > 20
    places = [(row, [bool(REFERENCE.search(cell)) for cell in row]) for row in rows]
    wrong = [
        row[0] for row, found in places if not (len(row) == 4 and found[1] and (found[2] or row[2] == "-") and found[3])
    ]
    refuse([*wrong, *(row[0] for row in rows if not row[3].startswith("`tests/"))], "rows of docs/where.md")


def test_decisions_are_whole_and_listed_in_order_with_their_titles() -> None:
    pages = [(page.name, page.read_text(encoding="utf-8")) for page in sorted(DECISIONS.glob("[0-9]*.md"))]
    listed = re.findall(
        r"^\| (\d+) \| \[(.*)\]\((.*)\) \|", (DECISIONS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )

    assert [(name[:4], name) for name, _ in pages] == [(f"{int(number):04}", name) for number, _, name in listed]
    assert [text.splitlines()[0] for _, text in pages] == [f"# {number}. {title}" for number, title, _ in listed]
    wrong = [(name, wrong_decision(number, text)) for number, (name, text) in enumerate(pages, start=1)]
    refuse((f"{name}: {why}" for name, why in wrong if why), "pages about decisions that are not whole")


def test_changelog_begins_with_the_version_that_is_built() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert re.fullmatch(rf"\[{re.escape(version)}\] - (Unreleased|20\d\d-\d\d-\d\d)", headings[0])


@pytest.mark.parametrize(
    "wrong",
    [
        "`controller/no_such_module.py`",
        "`snapshots/views/derived_states.py::no_such_name`",
        "`tests/unit/nowhere.py::test_x`",
    ],
)
def test_reference_that_leads_nowhere_is_found(wrong: str) -> None:
    assert len(list(missing(f"see {wrong}"))) == 1


def test_reference_to_what_exists_is_right() -> None:
    assert not list(missing("`snapshots/views/derived_states.py::REPLICA_PREVIOUS` and `snapshots/` and `quorate_x`"))


@pytest.mark.parametrize("wrong", ["[a](no-such-page.md)", "[a](glossary.md#no-such-heading)", "[a](#no-such-heading)"])
def test_link_that_leads_nowhere_is_found(wrong: str) -> None:
    assert len(list(dead_links(GLOSSARY, f"# Title\n\nsee {wrong}\n"))) == 1


def test_links_that_lead_somewhere_are_right() -> None:
    text = "# A title\n\n[a](#a-title), [b](drills.md#how-it-is-done), [c](../README.md), [d](https://example.org/#x)\n"

    assert not list(dead_links(GLOSSARY, text))


def test_rooms_are_listed_with_what_they_say_of_themselves() -> None:
    """A folder listing is where a newcomer begins: its page and the code say the same."""
    rooms = {
        init: init.read_text(encoding="utf-8")
        for package in PACKAGES
        for init in (ROOT / package).glob("*/__init__.py")
    }
    lines = {
        f"| `{init.parent.relative_to(ROOT).as_posix()}/` | {text.split(chr(34) * 3)[1].strip().splitlines()[0]} |"
        for init, text in rooms.items()
    }
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = {line for line in page[page.index("## The rooms") :].splitlines() if re.match(r"\| `\w+/\w+/` \| ", line)}
    assert listed == lines
