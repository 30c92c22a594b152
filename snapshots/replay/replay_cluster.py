"""Replay of registrations. Changes must name the epoch of the registration they change, as in Kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image_editor import ImageEditor
from quorate.snapshots.table.cluster import BrokerRegistration, ControllerRegistration, directory_order

#: ``BrokerRegistrationChangeRecord.fenced`` -> the state after it; None = unchanged.
_FENCING: Final[dict[int, bool | None]] = {-1: False, 0: None, 1: True}
#: Likewise for ``in_controlled_shutdown``, which only a new registration ends.
_SHUTDOWN: Final[dict[int, bool | None]] = {0: None, 1: True}


def _register_broker(editor: ImageEditor, record: RegisterBrokerRecord) -> None:
    editor.brokers[record.broker_id] = BrokerRegistration.from_record(record)


def _register_controller(editor: ImageEditor, record: RegisterControllerRecord) -> None:
    editor.controllers[record.controller_id] = ControllerRegistration.from_record(record)


def _unregister_broker(editor: ImageEditor, record: UnregisterBrokerRecord) -> None:
    _registered(editor, record, record.broker_id, record.broker_epoch)
    editor.brokers.remove(record.broker_id)


def _fence_broker(editor: ImageEditor, record: FenceBrokerRecord) -> None:
    broker = _registered(editor, record, record.id, record.epoch)
    editor.brokers[broker.id] = broker.with_fenced(True)


def _unfence_broker(editor: ImageEditor, record: UnfenceBrokerRecord) -> None:
    broker = _registered(editor, record, record.id, record.epoch)
    editor.brokers[broker.id] = broker.with_fenced(False)


def _change_registration(editor: ImageEditor, record: BrokerRegistrationChangeRecord) -> None:
    broker = _registered(editor, record, record.broker_id, record.broker_epoch)
    if record.fenced not in _FENCING:
        raise ReplayError(f"BrokerRegistrationChangeRecord: fenced {record.fenced} is none of -1, 0, 1")
    if record.in_controlled_shutdown not in _SHUTDOWN:
        raise ReplayError(
            f"BrokerRegistrationChangeRecord: in_controlled_shutdown {record.in_controlled_shutdown} is neither 0 nor 1"
        )
    is_fenced, in_shutdown = _FENCING[record.fenced], _SHUTDOWN[record.in_controlled_shutdown]
    cordoned = record.cordoned_log_dirs
    editor.brokers[broker.id] = replace(
        broker,
        is_fenced=broker.is_fenced if is_fenced is None else is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if in_shutdown is None else in_shutdown,
        directories=tuple(sorted(record.log_dirs, key=directory_order)) or broker.directories,
        cordoned_directories=(
            broker.cordoned_directories if cordoned is None else tuple(sorted(cordoned, key=directory_order))
        ),
    )


def _registered(editor: ImageEditor, record: object, broker_id: int, epoch: int) -> BrokerRegistration:
    broker = editor.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"{type(record).__name__}: broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ReplayError(f"{type(record).__name__}: broker {broker_id} has epoch {broker.epoch}, not {epoch}")
    return broker


RULES: Final[dict[type, Callable[[ImageEditor, Any], None]]] = {
    RegisterBrokerRecord: _register_broker,
    RegisterControllerRecord: _register_controller,
    UnregisterBrokerRecord: _unregister_broker,
    FenceBrokerRecord: _fence_broker,
    UnfenceBrokerRecord: _unfence_broker,
    BrokerRegistrationChangeRecord: _change_registration,
}
