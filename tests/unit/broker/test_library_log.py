"""Events that go to a program's own ``logging``."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from quorate.broker.library_log import log_to_the_program


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


def test_field_that_a_record_of_logging_has_itself_is_said_under_another_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_to_the_program()
    error = LookupError("of the event")
    with caplog.at_level(logging.INFO):
        structlog.get_logger().error(
            "event.slow", name="createTopics", message="m", asctime="a", args=(1,), took_ms=7, exc_info=error
        )

    (record,) = caplog.records
    assert (record.getMessage(), record.levelname) == ("event.slow", "ERROR")
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    said = {name: vars(record)[name] for name in ("name_", "message_", "asctime_", "args_", "took_ms")}
    assert said == {"name_": "createTopics", "message_": "m", "asctime_": "a", "args_": (1,), "took_ms": 7}


def test_program_that_has_configured_structlog_keeps_its_own() -> None:
    own = [structlog.processors.KeyValueRenderer()]
    structlog.configure(processors=own)
    log_to_the_program()
    assert structlog.get_config()["processors"] is own
