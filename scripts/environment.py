"""Make `.venv` from the lock, with the standard library alone: the launchers run this before all else.

`uv.lock` is the only list of what is installed.
It is not installed by `uv sync`: that downloads from the addresses written in the lock, so it fails on a
machine that reaches packages only through an index of its own.
Instead the lock is exported as pins with hashes, fetched from the index the machine is configured for:
the versions and the bytes stay the lock's, the place they come from is the machine's.
"""

import ast
import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "made-from"
#: There, and equal to `STAMP`, where the environment holds the pipeline extra too (`--pipeline`).
PIPELINE_STAMP = VENV / "pipeline-made-from"
UV = VENV / "bin" / "uv"
PINS = VENV / "pins.txt"
BUILD_PINS = VENV / "build-pins.txt"
UV_PIN = VENV / "uv-pin.txt"
PIPELINE_PINS = VENV / "pipeline-pins.txt"
LOCK_FILE = ROOT / ".venv.lock"  # beside the environment, not in it: it must outlive a rebuild

#: The same setting of both installers: pip's name in its configuration, pip's and uv's variables.
#: uv does not read pip's configuration, and pip, which fetches uv, does not read uv's.
INDEX_SETTINGS = (
    ("index-url", "PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
    ("extra-index-url", "PIP_EXTRA_INDEX_URL", "UV_INDEX"),
    ("find-links", "PIP_FIND_LINKS", "UV_FIND_LINKS"),
    ("trusted-host", "PIP_TRUSTED_HOST", "UV_INSECURE_HOST"),
    ("cert", "PIP_CERT", "SSL_CERT_FILE"),
)


class EnvironmentFailed(Exception):
    """A step of making the environment failed; the message says which, its output has been shown."""


def wanted_stamp() -> bytes:
    """Return what a fresh environment is stamped with: the checkout's path, then all it is made from.

    `environment.sh` makes the same bytes to see, without a Python, whether there is anything to do.
    """
    return b"".join((place_line(), (ROOT / "pyproject.toml").read_bytes(), (ROOT / "uv.lock").read_bytes()))


def place_line() -> bytes:
    """Return the stamp's first line. Scripts in an environment name their interpreter: it cannot be moved."""
    return f"{ROOT}\n".encode()


def found(file: Path) -> bytes:
    """Return what a file of the environment holds: of a stamp nothing where what it stands for is unfinished."""
    return file.read_bytes() if file.exists() else b""


def write_stamp(stamp: Path) -> None:
    """Say that what the stamp stands for is there; a stamp is whole or not there at all."""
    unfinished = stamp.with_suffix(".part")
    unfinished.write_bytes(wanted_stamp())
    unfinished.rename(stamp)


def say(sentence: str) -> None:
    print(f"quorate: {sentence}", file=sys.stderr, flush=True)


def run(step: str, *command: str | Path, env: dict[str, str] | None = None, is_long: bool = False) -> str:
    """Run one command and return its output; where it fails, show that and raise `EnvironmentFailed`.

    On a terminal a long one shows its own progress.
    """
    errors = None if is_long and sys.stderr.isatty() else subprocess.PIPE
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, check=False
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr or done.stdout)
        raise EnvironmentFailed(f"{step} failed with exit code {done.returncode} (its output is above)")
    return done.stdout


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock under which the environment is changed; wait for another launcher that holds it."""
    with LOCK_FILE.open("w", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another launcher that is making the Python environment")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def pip_settings() -> dict[str, str]:
    """Return pip's configuration by option; as for pip itself, its variables win over its files."""
    settings: dict[str, str] = {}
    rank = {"global": 0, "install": 1, ":env:": 2}
    listed = [line.partition("=") for line in run("reading pip's settings", *pip(), "config", "list").splitlines()]
    for key, _, value in sorted(listed, key=lambda item: rank.get(item[0].rpartition(".")[0], -1)):
        section, _, name = key.rpartition(".")
        if section in rank:
            settings[name] = " ".join(str(ast.literal_eval(value)).split())
    return settings


def pip() -> tuple[str | Path, ...]:
    return PYTHON, "-I", "-m", "pip", "--disable-pip-version-check"


def installer_variables() -> dict[str, str]:
    """Return this process's variables with the index settings of either installer given to the other."""
    variables = dict(os.environ)
    configured = pip_settings()
    for option, pip_name, uv_name in INDEX_SETTINGS:
        if option in configured:
            value = configured[option]
            if option == "find-links":
                # A directory that is not there is nothing to pip and an error to uv.
                value = ",".join(place for place in value.split() if "://" in place or Path(place).is_dir())
            if value:
                variables.setdefault(uv_name, value)
        elif uv_name in variables:
            variables.setdefault(pip_name, variables[uv_name])
    variables["UV_PYTHON_DOWNLOADS"] = "never"
    return variables


def locked_uv() -> str:
    """Return uv as a line of pip's requirements: its version by the lock, and the digests of its files there."""
    with (ROOT / "uv.lock").open("rb") as handle:
        packages = tomllib.load(handle)["package"]
    uv = next(package for package in packages if package["name"] == "uv")
    digests = [file["hash"] for file in (uv["sdist"], *uv["wheels"])]
    return " ".join([f"uv=={uv['version']}", *(f"--hash={digest}" for digest in digests)])


def export_pins(variables: dict[str, str]) -> None:
    """Write what the lock says to files that the installer reads: the base, with the pipeline's extras, build tools."""
    export = (UV, "export", "--quiet", "--project", ROOT, "--python", PYTHON, "--frozen", "--no-emit-project")
    plain = ("--no-annotate", "--no-header")
    everything = ("--all-groups", "--no-group", "build")
    for path, groups in (
        (PINS, everything),
        (PIPELINE_PINS, (*everything, "--extra", "pipeline", "--extra", "delta")),
        (BUILD_PINS, ("--only-group", "build")),
    ):
        path.write_text(run("reading uv.lock", *export, *plain, *groups, env=variables), encoding="utf-8")


def pins_of_pipeline() -> set[bytes]:
    """Return the lines of the pins that only the pipeline extra has."""
    return set(found(PIPELINE_PINS).splitlines()) - set(found(PINS).splitlines())


def installer_choice() -> tuple[str | Path, ...]:
    # With hashes an equal version from another index is an equal file or refused, so all indexes may be asked.
    choice = ("--require-hashes", "--build-constraints", BUILD_PINS, "--index-strategy", "unsafe-best-match")
    # Compiled here: the first start of a cluster is several processes at once that would each compile the same.
    return ("--compile-bytecode", "--python", PYTHON, *choice)


def install() -> None:
    """Bring `.venv` to exactly the packages of the lock and the project itself, editable.

    The pipeline extra stays where it is and the lock still says the same of it: nothing of it is fetched here.
    """
    variables = installer_variables()
    UV_PIN.write_text(locked_uv() + "\n", encoding="utf-8")
    run("fetching uv", *pip(), "install", "--quiet", "--require-hashes", "--requirement", UV_PIN, env=variables)
    had_pipeline, pipeline_before = PIPELINE_STAMP.exists(), pins_of_pipeline()
    PIPELINE_STAMP.unlink(missing_ok=True)
    export_pins(variables)
    keeps_pipeline = had_pipeline and pins_of_pipeline() == pipeline_before
    pins = PIPELINE_PINS if keeps_pipeline else PINS
    run("installing the lock", UV, "pip", "sync", "--quiet", *installer_choice(), pins, env=variables)
    project = ("--quiet", "--python", PYTHON, "--build-constraints", BUILD_PINS, "--no-deps", "--editable", ROOT)
    run("installing the project", UV, "pip", "install", *project, env=variables)
    if keeps_pipeline:
        write_stamp(PIPELINE_STAMP)


def make() -> None:
    """Make or mend the environment unless it is fresh by now. The caller holds the lock."""
    stamp, wanted = found(STAMP), wanted_stamp()
    if stamp == wanted:
        return
    is_mendable = stamp.startswith(place_line()) and PYTHON.exists()
    STAMP.unlink(missing_ok=True)
    if is_mendable:
        say("bringing the Python environment in .venv up to uv.lock")
    else:
        say("making the Python environment in .venv from uv.lock (once, about a minute)")
        shutil.rmtree(VENV, ignore_errors=True)
        # The real file (python3.12, not python3): should it go away, the link dangles and .venv is made anew.
        run("making a virtual environment", os.path.realpath(sys.executable), "-I", "-m", "venv", VENV)
    install()
    write_stamp(STAMP)


def add_pipeline() -> None:
    """Bring in the pipeline extra unless it is there by now. The base is fresh, the caller holds the lock.

    Nothing that is there is taken away meanwhile: servers may be running from it.
    """
    if found(PIPELINE_STAMP) == wanted_stamp():
        return
    say("bringing Spark and what else the pipeline needs into .venv (once: 600 MB to fetch, 1 GB on disk)")
    variables = installer_variables()
    export_pins(variables)
    run(
        "installing the pipeline extra", UV, "pip", "install", *installer_choice(), "--requirement", PIPELINE_PINS,
        env=variables, is_long=True,
    )  # fmt: skip
    write_stamp(PIPELINE_STAMP)
    say("the pipeline extra is there")


def main() -> int:
    """Make the environment, with `--pipeline` that extra too; every failure is one sentence and an exit code."""
    try:
        with only_one():
            make()
            if sys.argv[1:] == ["--pipeline"]:
                add_pipeline()
    except EnvironmentFailed as failure:
        say(f"the Python environment could not be made: {failure}")
        return 1
    except OSError as error:
        say(f"the Python environment could not be made: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start rebuilds the Python environment")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
