"""The heap of Spark's driver: bounded by default, refused where it cannot be."""

import pytest

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.spark.memory import driver_memory, machine_bytes

GIB = 2**30


@pytest.mark.parametrize(
    ("machine", "heap"), [(1 * GIB, "512m"), (3 * GIB, "1024m"), (12 * GIB, "4096m"), (256 * GIB, "4096m")]
)
def test_heap_that_nobody_asked_for_is_a_third_of_the_machine(machine: int, heap: str) -> None:
    assert driver_memory(None, machine) == heap


@pytest.mark.parametrize(
    ("asked", "heap"), [("1g", "1024m"), ("1500m", "1500m"), ("2GB", "2048m"), ("900000k", "878m")]
)
def test_heap_that_was_asked_for_is_taken(asked: str, heap: str) -> None:
    assert driver_memory(asked, 8 * GIB) == heap


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("lots", "driver memory 'lots' is no size: give digits and a unit, as 2g or 1500m"),
        ("2", "driver memory '2' is no size: give digits and a unit, as 2g or 1500m"),
        ("-1g", "driver memory '-1g' is no size: give digits and a unit, as 2g or 1500m"),
        ("100m", "driver memory 100m is too little for Spark: give 512m or more"),
        ("9g", "driver memory 9g is more than the 8192 MiB that there are here"),
    ],
)
def test_heap_that_cannot_be_is_refused_with_what_to_give(asked: str, sentence: str) -> None:
    with pytest.raises(BadSetting) as caught:
        driver_memory(asked, 8 * GIB)

    assert str(caught.value) == sentence


def test_memory_of_this_machine_is_some_and_not_endless() -> None:
    assert GIB // 4 < machine_bytes() < 2**50
