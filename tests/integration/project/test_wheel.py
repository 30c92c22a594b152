"""What is installed is enough: the programs of the pages run on the built wheel, and on nothing of the checkout."""

import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.integration.wheels import WAIT_S, built_wheel

ROOT = Path(__file__).parents[3]
#: Says where what it imports comes from; then what only developers run must not be there.
_WHERE = """
import importlib.util, sys
import quorate.answers, quorate.client, quorate.publishers, quorate.testing, quorate.watch, quorate.worker
print(*sorted({module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "quorate"}), sep="\\n")
assert importlib.util.find_spec("quorate.scripts.simulation") is None
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the wheel holds."""
    directory = tmp_path_factory.mktemp("wheel")
    wheel = built_wheel(ROOT, directory)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def run(installed: Path, program: str, directory: Path) -> str:
    """What a program prints that has the wheel and its libraries, and no path to the checkout (`-S`: no ``.pth``)."""
    file = directory / "program.py"
    file.write_text(program, encoding="utf-8")
    environment = {"PYTHONPATH": f"{installed}:{sysconfig.get_path('purelib')}"}
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-W", "error", str(file)],
        cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=WAIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def programs(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_wheel_is_all_that_is_imported(installed: Path, tmp_path: Path) -> None:
    modules = run(installed, _WHERE, tmp_path).splitlines()
    assert modules
    assert [module for module in modules if not module.startswith(f"{installed}/quorate/")] == []


def test_files_of_the_web_page_come_with_the_wheel(installed: Path) -> None:
    def files(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    page = Path("controller/http/page/assets")
    assert files(installed / "quorate" / page) == files(ROOT / page)


@pytest.mark.parametrize("page", ["library.md", "workers.md"])
def test_programs_of_the_page_run_on_the_wheel(installed: Path, tmp_path: Path, page: str) -> None:
    found = [program for program in programs(page) if "asyncio.run(main())" in program]
    assert found
    for program in found:
        run(installed, program, tmp_path)


def test_publisher_of_the_page_is_tested_on_the_wheel(installed: Path, tmp_path: Path) -> None:
    """The histories come with it, Apache Kafka's as well."""
    example, *others = programs("publishers.md")
    (test,) = (program for program in others if "def test_" in program)
    (name,) = re.findall(r"def (test_\w+)\(", test)
    run(installed, f"{example}\n{test}\n{name}()\n", tmp_path)


def test_deployment_files_come_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    program = """
from quorate.scripts.deployment.handing_out import KINDS, files_of
print(*sorted(f"{kind}/{file.name} {len(file.content)}" for kind in KINDS for file in files_of(kind)), sep="\\n")
"""
    ours = ROOT / "scripts" / "deployment"
    files = [path for path in ours.glob("*/*") if path.is_file() and path.suffix != ".pyc"]
    wanted = sorted(f"{path.relative_to(ours)} {len(path.read_text(encoding='utf-8'))}" for path in files)
    assert run(installed, program, tmp_path).splitlines() == wanted
