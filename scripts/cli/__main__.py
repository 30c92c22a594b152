"""Entry of the `quorate` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.scripts.cli import adding
from quorate.scripts.terminal.early_interrupt import ending_at_once

if TYPE_CHECKING:
    import typer

# Nothing here multiplies matrices. numpy brings threads for that, which look for work with all their might for a tenth
# of a second of every start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


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
        adding.add_up,
        "Start controllers and brokers on loopback, show the live status, and stop them in order at Ctrl-C.",
        _RUNNING,
    ),
    "node": _Command(
        adding.add_node,
        "The processes of a cluster that `quorate up` runs: list, kill, pause and start them, fail their disks.",
        _RUNNING,
    ),
    "format": _Command(
        adding.add_format,
        "Make a new cluster on machines of your own: its settings, and each controller's metadata directory.",
        _RUNNING,
    ),
    "deployment": _Command(
        adding.add_deployment,
        "Units of systemd, a container file and manifests of Kubernetes: list them, and write them out.",
        _RUNNING,
    ),
    "controller": _Command(
        adding.add_controller,
        "Run one voter of the quorum: it agrees on the log, follows or decides, and serves the HTTP API.",
        _RUNNING,
    ),
    "broker": _Command(
        adding.add_broker,
        "Play brokers: register, follow the metadata log, heartbeat, lead and follow without any data.",
        _RUNNING,
    ),
    "status": _Command(
        adding.add_status, "Show the verdict on a cluster, its controllers, brokers and offline partitions.", _CLUSTER
    ),
    "explain": _Command(
        adding.add_explain,
        "Tell what is wrong with partitions or a controller, what explains it, and what to do.",
        _CLUSTER,
    ),
    "can-stop": _Command(
        adding.add_can_stop,
        "May these brokers, or these controllers, be stopped? Exit code 0: yes; 1: no, and why.",
        _CLUSTER,
    ),
    "what-if": _Command(
        adding.add_what_if,
        "Show the status of a cluster before and after events that do not happen: nothing is changed.",
        _CLUSTER,
    ),
    "apply": _Command(
        adding.add_apply, "Make the changes of a plan, if nothing that they go by has changed.", _CLUSTER
    ),
    "undo": _Command(
        adding.add_undo,
        "Take back what a request changed: it is found in the log, and the way back shown and asked about.",
        _CLUSTER,
    ),
    "cluster": _Command(adding.add_cluster, "Describe the cluster in a few numbers, and even it out.", _CLUSTER),
    "quorum": _Command(
        adding.add_quorum, "Who leads the controllers, in which epoch, and how far each voter is.", _CLUSTER
    ),
    "brokers": _Command(adding.add_brokers, "List, describe, drain and decommission brokers.", _CLUSTER),
    "topics": _Command(adding.add_topics, "List, describe, create, grow and delete topics.", _TOPICS),
    "partitions": _Command(
        adding.add_partitions, "List partitions by topic, broker, leader and state, and describe single ones.", _TOPICS
    ),
    "reassign": _Command(
        adding.add_reassign, "Move partitions to other brokers: plan, apply, watch, verify, cancel.", _TOPICS
    ),
    "elect": _Command(
        adding.add_elect,
        "Elect the preferred leaders, or, where data may be lost, unclean ones. Unclean elections are asked about.",
        _TOPICS,
    ),
    "configs": _Command(
        adding.add_configs,
        "Show and change the configs of topics, brokers, groups and client metrics subscriptions.",
        _SETTINGS,
    ),
    "features": _Command(adding.add_features, "Show, raise and lower the levels of a cluster's features.", _SETTINGS),
    "labels": _Command(adding.add_labels, "Show, set and remove labels: small values of your own.", _SETTINGS),
    "quotas": _Command(
        adding.add_quotas, "Show, set and remove the quotas of users, client ids and addresses.", _ACCESS
    ),
    "context": _Command(adding.add_context, "Name clusters, and use one of them in all commands.", _ACCESS),
    "login": _Command(
        adding.add_login, "Log in with a password, and be this user in all commands until the login ends.", _ACCESS
    ),
    "logout": _Command(adding.add_logout, "Forget the login that is kept for a cluster.", _ACCESS),
    "users": _Command(adding.add_users, "Show, set, check and remove the SCRAM credentials of users.", _ACCESS),
    "acls": _Command(
        adding.add_acls, "Show, add and remove ACLs: who may do what, with brokers and with controllers.", _ACCESS
    ),
    "tokens": _Command(adding.add_tokens, "Make, renew, end and list delegation tokens.", _ACCESS),
    "bearer-tokens": _Command(
        adding.add_bearer_tokens,
        "Give principals tokens, by which controllers with `access.authorizer = acl` know who asks.",
        _ACCESS,
    ),
    "certs": _Command(
        adding.add_certs,
        "A CA and certificates for controllers, brokers and clients: make, renew and look at them.",
        _ACCESS,
    ),
    "image": _Command(
        adding.add_image, "The state that a log or a checkpoint adds up to; what differs between two.", _FILES
    ),
    "snapshot": _Command(
        adding.add_snapshot, "Take, list, save, verify, show, restore and export checkpoints.", _FILES
    ),
    "backup": _Command(
        adding.add_backup,
        "Save the state of a running cluster in a dated file, and remove the oldest ones. For cron and systemd timers.",
        _FILES,
    ),
    "history": _Command(
        adding.add_history,
        "Show what changed in a log, of everything or of one thing: one line a request, with who asked and its effect.",
        _FILES,
    ),
    "timeline": _Command(
        adding.add_timeline,
        "Tell what happened to controllers, brokers and partitions, in the order of time.",
        _FILES,
    ),
    "incidents": _Command(
        adding.add_incidents, "Tell what went wrong: when, for how long, how bad it was, and why.", _FILES
    ),
    "page": _Command(
        adding.add_page,
        "Serve the web page of a log in files, with its timeline, read-only on loopback, until Ctrl-C.",
        _FILES,
    ),
    "audit": _Command(
        adding.add_audit, "What a controller wrote down about who asked for what, and what was refused.", _FILES
    ),
    "refusals": _Command(
        adding.add_refusals,
        "Show which requests were refused: when, how often, in whose name, from where, and why.",
        _FILES,
    ),
    "log": _Command(adding.add_log, "Look into metadata logs and checkpoints, Quorate's or Apache Kafka's.", _FILES),
    "drill": _Command(adding.add_drill, "Rehearse disasters on real processes, and measure what they cost.", _RUNNING),
    "watching": _Command(
        adding.add_watching, "Alert rules and a scrape config for Prometheus, a dashboard for Grafana.", _RUNNING
    ),
    "recover": _Command(
        adding.add_recover,
        "Rebuild a quorum whose majority is lost for good: survey, plan, apply, verify. One controller: rejoin.",
        _FILES,
    ),
    "completion": _Command(
        adding.add_completion,
        "Print what a shell needs to complete commands, options, and names that it asks the cluster for.",
        _RUNNING,
    ),
    "manual": _Command(adding.add_manual, "The manual pages of all commands, as files for man.", _RUNNING),
    "pipeline": _Command(
        adding.add_pipeline,
        "Question months of logs of many clusters, with Apache Spark: replay, audit, history.",
        _FILES,
    ),
}


def command_summaries() -> dict[str, str]:
    """The sentence that says what each command is for, in the order of the list."""
    return {name: command.summary for name, command in _COMMANDS.items()}


def make_app(arguments: list[str]) -> typer.Typer:
    """The application with the command that is called, or with a list of all where none is (`--help`, misspellings)."""
    import typer

    from quorate.scripts.cli.root import root_options

    app = typer.Typer(
        name="quorate",
        help="A KRaft-style metadata controller: run it, look into it, rehearse on it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(root_options)
    called = next((argument for argument in arguments if argument != "--"), "")
    if called in _COMMANDS:
        _COMMANDS[called].add(app)
    else:
        for name, command in _COMMANDS.items():
            app.command(name, help=command.summary, rich_help_panel=command.panel)(_only_listed)
    return app


def _only_listed() -> None:
    raise AssertionError("a command that is called is imported")


def main() -> None:
    """The command of this process; or the answer to a shell that completes one."""
    line = os.environ.pop("QUORATE_COMPLETE_LINE", None)
    if line is not None:
        from quorate.scripts.terminal.completing.answer import answer

        answer(line)
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
