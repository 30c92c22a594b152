"""Each command's module, imported when the command is called.

Looking into a file must not wait for the libraries of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.scripts.cli.lean_imports import import_lean_client, import_lean_server
from quorate.scripts.cli.option_groups import command_of

if TYPE_CHECKING:
    import typer


def add_completion(app: typer.Typer) -> None:
    """Add `completion`."""
    from quorate.scripts.cli.shell import completion

    app.command("completion")(completion.completion)


def add_manual(app: typer.Typer) -> None:
    """Add `manual`."""
    from quorate.scripts.cli.shell import manual

    app.add_typer(manual.app, name="manual")


def add_refusals(app: typer.Typer) -> None:
    """Add `refusals`."""
    import_lean_client()
    from quorate.scripts.cli.access import refusals

    app.command("refusals")(refusals.show_refusals)


def add_audit(app: typer.Typer) -> None:
    """Add `audit`."""
    from quorate.scripts.cli.logs import audit_chain

    app.add_typer(audit_chain.app, name="audit")


def add_backup(app: typer.Typer) -> None:
    """Add `backup`."""
    import_lean_client()
    from quorate.scripts.cli.snapshot import backup

    app.command("backup")(backup.backup)


def add_deployment(app: typer.Typer) -> None:
    """Add `deployment`."""
    from quorate.scripts.cli.clusters import deployment

    app.add_typer(deployment.app, name="deployment")


def add_history(app: typer.Typer) -> None:
    """Add `history`."""
    from quorate.scripts.cli.logs import history

    app.command("history")(history.show_history)


def add_page(app: typer.Typer) -> None:
    """Add `page`."""
    import_lean_server()
    from quorate.scripts.cli.page.page import show_page

    app.command("page")(show_page)


def add_timeline(app: typer.Typer) -> None:
    """Add `timeline`."""
    from quorate.scripts.cli.incidents import timeline

    app.command("timeline")(timeline.show_timeline)


def add_incidents(app: typer.Typer) -> None:
    """Add `incidents`."""
    from quorate.scripts.cli.incidents import incidents

    app.command("incidents")(command_of(incidents.show_incidents))


def add_log(app: typer.Typer) -> None:
    """Add `log`."""
    from quorate.scripts.cli.logs import log

    app.add_typer(log.app, name="log")


def add_image(app: typer.Typer) -> None:
    """Add `image`."""
    from quorate.scripts.cli.logs import image

    app.add_typer(image.app, name="image")


def add_snapshot(app: typer.Typer) -> None:
    """Add `snapshot`."""
    import_lean_client()
    from quorate.scripts.cli.snapshot import command as snapshot

    app.add_typer(snapshot.app, name="snapshot")


def add_status(app: typer.Typer) -> None:
    """Add `status`."""
    import_lean_client()
    from quorate.scripts.cli import status

    app.command()(status.status)


def add_apply(app: typer.Typer) -> None:
    """Add `apply`."""
    import_lean_client()
    from quorate.scripts.cli.plans import apply

    app.command("apply")(command_of(apply.apply))


def add_undo(app: typer.Typer) -> None:
    """Add `undo`."""
    import_lean_client()
    from quorate.scripts.cli.plans import undo

    app.command("undo")(command_of(undo.undo))


def add_can_stop(app: typer.Typer) -> None:
    """Add `can-stop`."""
    import_lean_client()
    from quorate.scripts.cli.answers import can_stop

    app.add_typer(can_stop.app, name="can-stop")


def add_what_if(app: typer.Typer) -> None:
    """Add `what-if`."""
    import_lean_client()
    from quorate.scripts.cli.answers import what_if

    app.command("what-if")(what_if.what_if)


def add_explain(app: typer.Typer) -> None:
    """Add `explain`."""
    import_lean_client()
    from quorate.scripts.cli.answers import explain

    app.command("explain")(explain.explain)


def add_broker(app: typer.Typer) -> None:
    """Add `broker`."""
    import_lean_server()
    from quorate.scripts.cli import broker

    app.command()(broker.broker)


def add_controller(app: typer.Typer) -> None:
    """Add `controller`."""
    import_lean_server()
    from quorate.scripts.cli import controller

    app.command()(controller.controller)


def add_up(app: typer.Typer) -> None:
    """Add `up`."""
    import_lean_client()
    from quorate.scripts.cli.clusters import up

    app.command()(up.up)


def add_node(app: typer.Typer) -> None:
    """Add `node`."""
    import_lean_client()
    from quorate.scripts.cli.clusters import node

    app.add_typer(node.app, name="node")


def add_cluster(app: typer.Typer) -> None:
    """Add `cluster`."""
    import_lean_client()
    from quorate.scripts.cli import cluster

    app.add_typer(cluster.app, name="cluster")


def add_quorum(app: typer.Typer) -> None:
    """Add `quorum`."""
    import_lean_client()
    from quorate.scripts.cli import quorum

    app.add_typer(quorum.app, name="quorum")


def add_brokers(app: typer.Typer) -> None:
    """Add `brokers`."""
    import_lean_client()
    from quorate.scripts.cli import brokers

    app.add_typer(brokers.app, name="brokers")


def add_topics(app: typer.Typer) -> None:
    """Add `topics`."""
    import_lean_client()
    from quorate.scripts.cli.topics import topics

    app.add_typer(topics.app, name="topics")


def add_partitions(app: typer.Typer) -> None:
    """Add `partitions`."""
    import_lean_client()
    from quorate.scripts.cli.topics import partitions

    app.add_typer(partitions.app, name="partitions")


def add_reassign(app: typer.Typer) -> None:
    """Add `reassign`."""
    import_lean_client()
    from quorate.scripts.cli.topics import reassign

    app.add_typer(reassign.app, name="reassign")


def add_elect(app: typer.Typer) -> None:
    """Add `elect`."""
    import_lean_client()
    from quorate.scripts.cli.topics import elect

    app.command()(elect.elect)


def add_configs(app: typer.Typer) -> None:
    """Add `configs`."""
    import_lean_client()
    from quorate.scripts.cli.topics import configs

    app.add_typer(configs.app, name="configs")


def add_features(app: typer.Typer) -> None:
    """Add `features`."""
    import_lean_client()
    from quorate.scripts.cli import features

    app.add_typer(features.app, name="features")


def add_labels(app: typer.Typer) -> None:
    """Add `labels`."""
    import_lean_client()
    from quorate.scripts.cli import labels

    app.add_typer(labels.app, name="labels")


def add_quotas(app: typer.Typer) -> None:
    """Add `quotas`."""
    import_lean_client()
    from quorate.scripts.cli.access import quotas

    app.add_typer(quotas.app, name="quotas")


def add_users(app: typer.Typer) -> None:
    """Add `users`."""
    import_lean_client()
    from quorate.scripts.cli.access import users

    app.add_typer(users.app, name="users")


def add_acls(app: typer.Typer) -> None:
    """Add `acls`."""
    import_lean_client()
    from quorate.scripts.cli.access import acls

    app.add_typer(acls.app, name="acls")


def add_tokens(app: typer.Typer) -> None:
    """Add `tokens`."""
    import_lean_client()
    from quorate.scripts.cli.access import tokens

    app.add_typer(tokens.app, name="tokens")


def add_bearer_tokens(app: typer.Typer) -> None:
    """Add `bearer-tokens`."""
    import_lean_client()
    from quorate.scripts.cli.access import bearer_tokens

    app.add_typer(bearer_tokens.app, name="bearer-tokens")


def add_context(app: typer.Typer) -> None:
    """Add `context`."""
    import_lean_client()
    from quorate.scripts.cli.access import context

    app.add_typer(context.app, name="context")


def add_login(app: typer.Typer) -> None:
    """Add `login`."""
    import_lean_client()
    from quorate.scripts.cli.access import login

    app.command("login")(login.login)


def add_logout(app: typer.Typer) -> None:
    """Add `logout`."""
    import_lean_client()
    from quorate.scripts.cli.access import login

    app.command("logout")(login.logout)


def add_certs(app: typer.Typer) -> None:
    """Add `certs`."""
    from quorate.scripts.cli.access import certs

    app.add_typer(certs.app, name="certs")


def add_watching(app: typer.Typer) -> None:
    """Add `watching`."""
    from quorate.scripts.cli import watching

    app.add_typer(watching.app, name="watching")


def add_format(app: typer.Typer) -> None:
    """Add `format`."""
    import_lean_client()
    from quorate.scripts.cli.clusters import format as format_commands

    app.add_typer(format_commands.app, name="format")


def add_recover(app: typer.Typer) -> None:
    """Add `recover`."""
    import_lean_client()
    from quorate.scripts.cli.clusters import recover

    app.add_typer(recover.app, name="recover")


def add_drill(app: typer.Typer) -> None:
    """Add `drill`."""
    import_lean_client()
    from quorate.scripts.cli.clusters import drill

    app.add_typer(drill.app, name="drill")


def add_pipeline(app: typer.Typer) -> None:
    """Add `pipeline`."""
    from quorate.scripts.cli import pipeline

    app.add_typer(pipeline.app, name="pipeline")
