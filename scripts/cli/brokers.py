"""`quorate brokers`: who is registered, what lies on them, and taking registrations away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.api.resources import BrokerReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import UnregisterBrokerRequest
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.cli.feed import feed
from quorate.scripts.cli.moves.drain import decommission, drain
from quorate.scripts.cli.option_groups import command_of
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal.arguments import AsJson, BrokerId, PlanTo, Yes, confirm
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import ago, counted, or_dash, show
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.programs.failures import Failed
from quorate.scripts.terminal.tables import Wide, columns, table

app = typer.Typer(help="List, describe, drain and decommission brokers.", no_args_is_help=True)
app.command()(feed)
app.command()(command_of(drain))
app.command()(decommission)

#: What is known of a running cluster alone.
_OF_NOW: Final = ("LAG(RECORDS)", "LAST-HEARTBEAT")
_HEADS: Final = ("BROKER", "STATE", "RACK", "EPOCH", "LISTENERS", *_OF_NOW)


@app.command("list")
def list_(
    wide: Wide = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List the registered brokers.

    Example: quorate brokers list
    """
    reply = ask(controllers, secret_file, lambda client: client.describe_brokers(), path=from_path, at=at)
    rows = (
        (
            str(one.id), one.state, one.rack or "-", str(one.epoch), _listeners(one),
            or_dash(one.lag_records), ago(one.last_heartbeat_ms),
        )
        for one in reply.brokers
    )  # fmt: skip
    show(reply, table(_HEADS, rows, wide=wide, may_hide=("RACK", *_OF_NOW)), as_json=as_json)


class BrokerDescription(BaseModel):
    """A broker, and what lies on it, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    broker: BrokerReply
    #: Partitions with a replica on it.
    replicas: int
    #: Partitions that it leads.
    leaders: int
    #: Partitions with a replica on it and one outside the ISR, its own or another.
    under_replicated: int


@app.command()
def describe(
    broker_id: BrokerId,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show one broker, and how much lies on it.

    Example: quorate brokers describe 12
    """
    described = ask(controllers, secret_file, lambda client: _described(client, broker_id), path=from_path, at=at)
    show(described, columns(list(_facts(described))), as_json=as_json)


async def _described(client: ControllerClient, broker_id: int, consistency: str = "committed") -> BrokerDescription:
    return BrokerDescription(
        broker=await client.describe_broker(broker_id),
        replicas=(await client.list_partitions(limit=1, broker=broker_id, consistency=consistency)).matching,
        leaders=(await client.list_partitions(limit=1, leader=broker_id, consistency=consistency)).matching,
        under_replicated=(
            await client.list_partitions(
                limit=1, broker=broker_id, conditions="under-replicated", consistency=consistency
            )
        ).matching,
    )


async def _described_if_there(client: ControllerClient, broker_id: int) -> BrokerDescription | None:
    """None where it is not registered: whoever wants to unregister it is told that. It holds what was acknowledged."""
    is_there = any(broker.id == broker_id for broker in (await client.describe_brokers()).brokers)
    return await _described(client, broker_id, "linearizable") if is_there else None


def _facts(described: BrokerDescription) -> Iterator[tuple[str, str]]:
    broker = described.broker
    yield "broker", str(broker.id)
    yield "state", broker.state
    yield "rack", broker.rack or "-"
    yield "epoch", str(broker.epoch)
    yield "incarnation", uuid_text(broker.incarnation_id)
    yield "listeners", _listeners(broker)
    yield "directories", ",".join(map(uuid_text, broker.directories)) or "-"
    yield "cordoned directories", ",".join(map(uuid_text, broker.cordoned_directories)) or "-"
    yield "applied offset", or_dash(broker.applied_offset)
    yield "lag", or_dash(broker.lag_records)
    yield "last heartbeat", ago(broker.last_heartbeat_ms)
    yield "replicas", str(described.replicas)
    yield "leader of", str(described.leaders)
    yield "under-replicated", str(described.under_replicated)


@app.command()
def unregister(
    broker_id: BrokerId,
    force: Annotated[bool, typer.Option("--force", help="Also one that runs, or holds replicas.")] = False,
    plan: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Take away the registration of a broker that never comes back.

    One that holds replicas is refused: they would stay assigned to a broker that is no more. A broker that is not
    fenced runs: it would lose all its leaderships, and register again as soon as it hears of it (one of Apache
    Kafka's: when it is started again). So it is refused too. `quorate brokers decommission` does all of it in order;
    --force unregisters as it is, and replicas that stay are moved with `quorate brokers drain`.

    Example: quorate brokers unregister 12
    """
    held = ask(controllers, secret_file, lambda client: _described_if_there(client, broker_id))
    if held is not None and not force and (why := _why_not_unregistered(held)):
        raise Failed(f"broker {broker_id} {why}")
    if plan is not None:
        change = PlannedChange(unregister_broker=UnregisterBrokerRequest(broker_id=broker_id))
        write_plan(plan, "brokers unregister", [change], controllers, secret_file)
        return
    confirm(f"unregister broker {broker_id}", yes=yes)
    reply = ask(controllers, secret_file, lambda c: c.unregister_broker(broker_id), about=f"broker {broker_id}")
    if held is not None and held.replicas:
        sys.stderr.write(
            f"quorate: {counted(held.replicas, 'replica')} still on it: quorate brokers drain {broker_id} moves them\n"
        )
    text = as_document(reply) if as_json else f"Broker {broker_id} is no longer registered."
    sys.stdout.write(text + "\n")


def _why_not_unregistered(held: BrokerDescription) -> str:
    """The reason against it; "" where there is none."""
    holds = f"holds {counted(held.replicas, 'replica')} and leads {counted(held.leaders, 'partition')}"
    if held.broker.state != "fenced":
        return (
            f"is {held.broker.state}, {holds}, and would register again at once; quorate brokers decommission "
            f"{held.broker.id} drains it first and waits until it is stopped, or say --force"
        )
    if held.replicas:
        return f"{holds}; quorate brokers drain {held.broker.id} moves them, or say --force to leave them there"
    return ""


def _listeners(broker: BrokerReply) -> str:
    return ",".join(f"{one.name}://{one.host}:{one.port}" for one in broker.listeners) or "-"
