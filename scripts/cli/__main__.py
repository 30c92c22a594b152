"""Entry of the `quorate` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.scripts.cli.lean_imports import import_lean_client, import_lean_server
from quorate.scripts.terminal.early_interrupt import ending_at_once

if TYPE_CHECKING:
    import typer

# Looking into a file must not wait for the libraries of a server.


def _refusals(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import refusals

    app.command("refusals")(refusals.show_refusals)


def _audit(app: typer.Typer) -> None:
    from quorate.scripts.cli.logs import audit_chain

    app.add_typer(audit_chain.app, name="audit")


def _history(app: typer.Typer) -> None:
    from quorate.scripts.cli.logs import history

    app.command("history")(history.show_history)


def _log(app: typer.Typer) -> None:
    from quorate.scripts.cli.logs import log

    app.add_typer(log.app, name="log")


def _image(app: typer.Typer) -> None:
    from quorate.scripts.cli.logs import image

    app.add_typer(image.app, name="image")


def _snapshot(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.snapshot import command as snapshot

    app.add_typer(snapshot.app, name="snapshot")


def _status(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import status

    app.command()(status.status)


def _can_stop(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.answers import can_stop

    app.add_typer(can_stop.app, name="can-stop")


def _broker(app: typer.Typer) -> None:
    import_lean_server()
    from quorate.scripts.cli import broker

    app.command()(broker.broker)


def _controller(app: typer.Typer) -> None:
    import_lean_server()
    from quorate.scripts.cli import controller

    app.command()(controller.controller)


def _up(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.clusters import up

    app.command()(up.up)


def _node(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.clusters import node

    app.add_typer(node.app, name="node")


def _cluster(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import cluster

    app.add_typer(cluster.app, name="cluster")


def _quorum(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import quorum

    app.add_typer(quorum.app, name="quorum")


def _brokers(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import brokers

    app.add_typer(brokers.app, name="brokers")


def _topics(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.topics import topics

    app.add_typer(topics.app, name="topics")


def _partitions(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.topics import partitions

    app.add_typer(partitions.app, name="partitions")


def _reassign(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.topics import reassign

    app.add_typer(reassign.app, name="reassign")


def _elect(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.topics import elect

    app.command()(elect.elect)


def _configs(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.topics import configs

    app.add_typer(configs.app, name="configs")


def _features(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import features

    app.add_typer(features.app, name="features")


def _labels(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli import labels

    app.add_typer(labels.app, name="labels")


def _quotas(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import quotas

    app.add_typer(quotas.app, name="quotas")


def _users(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import users

    app.add_typer(users.app, name="users")


def _acls(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import acls

    app.add_typer(acls.app, name="acls")


def _tokens(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import tokens

    app.add_typer(tokens.app, name="tokens")


def _bearer_tokens(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.access import bearer_tokens

    app.add_typer(bearer_tokens.app, name="bearer-tokens")


def _certs(app: typer.Typer) -> None:
    from quorate.scripts.cli.access import certs

    app.add_typer(certs.app, name="certs")


def _format(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.clusters import format as format_commands

    app.add_typer(format_commands.app, name="format")


def _recover(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.clusters import recover

    app.add_typer(recover.app, name="recover")


def _drill(app: typer.Typer) -> None:
    import_lean_client()
    from quorate.scripts.cli.clusters import drill

    app.add_typer(drill.app, name="drill")


def _pipeline(app: typer.Typer) -> None:
    from quorate.scripts.cli import pipeline

    app.add_typer(pipeline.app, name="pipeline")


class _Command(NamedTuple):
    """A command that is imported when it is called."""

    add: Callable[[typer.Typer], None]
    #: What the list of commands says of it, which must not take the time to import them all.
    summary: str
    #: The part of the list it stands in.
    panel: str


_RUNNING: Final = "Run"
_CLUSTER: Final = "The cluster"
_TOPICS: Final = "Topics and partitions"
_SETTINGS: Final = "Configs and features"
_ACCESS: Final = "Users and access"
_FILES: Final = "Logs and checkpoints"

#: By name, in the order of the help text.
_COMMANDS: Final = {
    "up": _Command(
        _up,
        "Start controllers and brokers on loopback, show the live status, and stop them in order at Ctrl-C.",
        _RUNNING,
    ),
    "node": _Command(
        _node,
        "The processes of a cluster that `quorate up` runs: list, kill, pause and start them, fail their disks.",
        _RUNNING,
    ),
    "format": _Command(
        _format,
        "Make a new cluster on machines of your own: its settings, and each controller's metadata directory.",
        _RUNNING,
    ),
    "controller": _Command(
        _controller,
        "Run one voter of the quorum: it agrees on the log, follows or decides, and serves the HTTP API.",
        _RUNNING,
    ),
    "broker": _Command(
        _broker,
        "Play brokers: register, follow the metadata log, heartbeat, lead and follow without any data.",
        _RUNNING,
    ),
    "status": _Command(
        _status, "Show the verdict on a cluster, its controllers, brokers and offline partitions.", _CLUSTER
    ),
    "can-stop": _Command(
        _can_stop,
        "May these brokers, or these controllers, be stopped? Exit code 0: yes; 1: no, and why.",
        _CLUSTER,
    ),
    "cluster": _Command(_cluster, "The cluster's id, active controller, versions and counts.", _CLUSTER),
    "quorum": _Command(_quorum, "Who leads the controllers, in which epoch, and how far each voter is.", _CLUSTER),
    "brokers": _Command(_brokers, "List and describe brokers, and unregister those that never come back.", _CLUSTER),
    "topics": _Command(_topics, "List, describe, create, grow and delete topics.", _TOPICS),
    "partitions": _Command(
        _partitions, "List partitions by topic, broker, leader and state, and describe single ones.", _TOPICS
    ),
    "reassign": _Command(_reassign, "Move partitions to other brokers: plan, apply, watch, verify, cancel.", _TOPICS),
    "elect": _Command(
        _elect,
        "Elect the preferred leaders, or, where data may be lost, unclean ones. Unclean elections are asked about.",
        _TOPICS,
    ),
    "configs": _Command(
        _configs,
        "Show and change the configs of topics, brokers, groups and client metrics subscriptions.",
        _SETTINGS,
    ),
    "features": _Command(_features, "Show, raise and lower the levels of a cluster's features.", _SETTINGS),
    "labels": _Command(_labels, "Show, set and remove labels: small values of one's own.", _SETTINGS),
    "quotas": _Command(_quotas, "Show, set and remove the quotas of users, client ids and addresses.", _ACCESS),
    "users": _Command(_users, "Show, set, check and remove the SCRAM credentials of users.", _ACCESS),
    "acls": _Command(_acls, "Show, add and remove ACLs: who may do what, with brokers and with controllers.", _ACCESS),
    "tokens": _Command(_tokens, "Make, renew, end and list delegation tokens.", _ACCESS),
    "bearer-tokens": _Command(
        _bearer_tokens,
        "Give principals tokens, by which controllers with `access.authorizer = acl` know who asks.",
        _ACCESS,
    ),
    "certs": _Command(
        _certs, "A CA and certificates for controllers, brokers and clients: make, renew and look at them.", _ACCESS
    ),
    "image": _Command(_image, "The state that a log or a checkpoint adds up to; what differs between two.", _FILES),
    "snapshot": _Command(_snapshot, "Take, list, verify, show, restore and export checkpoints.", _FILES),
    "history": _Command(
        _history,
        "Show what changed in a log, of everything or of one thing: old and new value, when, where, why and by whom.",
        _FILES,
    ),
    "audit": _Command(_audit, "What a controller wrote down about who asked for what, and what was refused.", _FILES),
    "refusals": _Command(
        _refusals, "Show which requests were refused: when, how often, in whose name, from where, and why.", _FILES
    ),
    "log": _Command(_log, "Look into metadata logs and checkpoints, Quorate's or Apache Kafka's.", _FILES),
    "drill": _Command(_drill, "Rehearse disasters on real processes, and measure what they cost.", _RUNNING),
    "recover": _Command(
        _recover,
        "Rebuild a quorum whose majority is lost for good: survey, plan, apply, verify. One controller: rejoin.",
        _FILES,
    ),
    "pipeline": _Command(
        _pipeline, "Question months of logs of many clusters, with Apache Spark: replay, audit, history.", _FILES
    ),
}


def make_app(arguments: list[str]) -> typer.Typer:
    """The application with the command that is called, or with a list of all where none is (`--help`, misspellings)."""
    import typer

    app = typer.Typer(
        name="quorate",
        help="A KRaft-style metadata controller: run it, look into it, rehearse on it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_keep_names)
    called = next((argument for argument in arguments if argument != "--"), "")
    if called in _COMMANDS:
        _COMMANDS[called].add(app)
    else:
        for name, command in _COMMANDS.items():
            app.command(name, help=command.summary, rich_help_panel=command.panel)(_only_listed)
    return app


def _keep_names() -> None:
    """Keep the name of a command necessary even where it is the only one that was imported."""


def _only_listed() -> None:
    raise AssertionError("a command that is called is imported")


def main() -> None:
    """The command of this process."""
    # Logs, checkpoints, tables and reports have credentials and names in them: they are for whoever runs the command.
    os.umask(0o077)
    with ending_at_once():
        from quorate.scripts.terminal.command_line import run

        # What is imported stays for as long as the process: the collector need not look at it, now or later.
        gc.disable()
        app = make_app(sys.argv[1:])
        gc.freeze()
        gc.enable()
        from quorate.scripts.terminal.harmless import harmless_output
    with harmless_output():
        run(app, sys.argv[1:])


if __name__ == "__main__":
    main()
