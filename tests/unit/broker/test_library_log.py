"""Events that go to a program's own ``logging``."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from quorate.broker.library_log import log_to_the_program
from quorate.broker.publisher import LoggedFaults


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
    with caplog.at_level(logging.INFO):
        structlog.get_logger().error(
            "event.slow", name="createTopics", message="m", asctime="a", args=(1,), took_ms=7, exception="Traceback"
        )

    (record,) = caplog.records
    assert (record.getMessage(), record.levelname) == ("event.slow\nTraceback", "ERROR")
    said = {name: vars(record)[name] for name in ("name_", "message_", "asctime_", "args_", "took_ms")}
    assert said == {"name_": "createTopics", "message_": "m", "asctime_": "a", "args_": (1,), "took_ms": 7}


def test_program_that_has_configured_structlog_keeps_its_own() -> None:
    own = [structlog.processors.KeyValueRenderer()]
    structlog.configure(processors=own)
    log_to_the_program()
    assert structlog.get_config()["processors"] is own


def publish(secret: str) -> None:
    """A publisher's fault, with something secret in its frame."""
    raise LookupError("of the publisher")


def tell_of_a_fault() -> None:
    try:
        publish("hu" + "sh")
    except LookupError as error:
        LoggedFaults().publisher_failed("Shards", "on_metadata_update", error)


def test_traceback_has_no_variables_whatever_the_programs_structlog_shows(capsys: pytest.CaptureFixture[str]) -> None:
    shows_all = structlog.dev.RichTracebackFormatter(show_locals=True)
    structlog.configure(processors=[structlog.dev.ConsoleRenderer(colors=False, exception_formatter=shows_all)])
    tell_of_a_fault()
    said = capsys.readouterr().out
    assert "publisher.failed" in said
    assert "LookupError: of the publisher" in said
    assert "in publish" in said
    assert "hush" not in said


def test_traceback_is_a_part_of_the_words_that_logging_is_told(caplog: pytest.LogCaptureFixture) -> None:
    tell_of_a_fault()
    (record,) = caplog.records
    assert record.exc_info is None, "a handler of the program could show its variables"
    first, *_, last = record.getMessage().splitlines()
    assert first == "publisher.failed publisher='Shards' method='on_metadata_update'"
    assert last == "LookupError: of the publisher"
