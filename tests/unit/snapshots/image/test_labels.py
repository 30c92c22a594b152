"""Labels and the configs that carry them: one place each, and nothing else is taken for a label."""

from __future__ import annotations

import pytest

from quorate.metadata_log.records.hidden_values import no_secrets
from quorate.metadata_log.records.records import ConfigRecord, RemoveTopicRecord, TopicRecord, VersionedRecord
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.difference.delta import KeyChanges, MetadataDelta
from quorate.snapshots.difference.difference_entries import Entry, FieldChange
from quorate.snapshots.difference.image_difference import image_difference
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.image.labels import Label, config_of, label_of
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.views.as_json import summary_json

ORDERS = Label("topic:orders", "acme/schema")
ROUTING = Label("record:routing", "acme/version")


def after(image: MetadataImage, *changes: tuple[Label, str | None]) -> MetadataImage:
    records = [VersionedRecord(ConfigRecord(*config_of(label), value), 0) for label, value in changes]
    return replay(image, records)


def test_label_is_carried_by_a_config_that_does_not_change() -> None:
    """What is in logs must be found there by every later version."""
    assert config_of(ORDERS) == (BROKER_RESOURCE, "-109940", "label/topic:orders/acme/schema")
    assert config_of(Label("cluster", "a/b")) == (BROKER_RESOURCE, "-92564", "label/cluster/a/b")


@pytest.mark.parametrize("resource", ["cluster", "topic:orders", "partition:orders-7", "broker:3", "record:x", ""])
@pytest.mark.parametrize("key", ["acme/schema", "a/b/c", "", "none"])
def test_label_is_read_back_from_its_config(resource: str, key: str) -> None:
    label = Label(resource, key)
    resource_type, carrier, name = config_of(label)
    assert label_of(resource_type, carrier, name) == label
    assert -131_072 < int(carrier) <= -65_536


@pytest.mark.parametrize(
    "config",
    [
        (TOPIC_RESOURCE, config_of(ORDERS)[1], config_of(ORDERS)[2]),
        (BROKER_RESOURCE, "3", config_of(ORDERS)[2]),
        (BROKER_RESOURCE, "", config_of(ORDERS)[2]),
        (BROKER_RESOURCE, config_of(ORDERS)[1], "topic:orders/acme/schema"),
        (BROKER_RESOURCE, config_of(ROUTING)[1], config_of(ORDERS)[2]),
        (0, config_of(ORDERS)[1], config_of(ORDERS)[2]),
    ],
)
def test_other_configs_stay_configs(config: tuple[int, str, str]) -> None:
    assert label_of(*config) is None
    image = replay(EMPTY_IMAGE, [VersionedRecord(ConfigRecord(*config, "1"), 0)])
    assert image.configs.of(*config[:2]) == {config[2]: "1"}
    assert image.labels == EMPTY_IMAGE.labels


def test_labels_are_counted_and_are_no_configs() -> None:
    image = after(EMPTY_IMAGE, (ORDERS, "1"), (ORDERS._replace(key="acme/owner"), ""), (ROUTING, "9"))
    assert image.labels.count == 3
    assert image.labels.of("topic:orders") == {"acme/schema": "1", "acme/owner": ""}
    assert image.labels.of("topic:other") == {}
    assert image.configs == EMPTY_IMAGE.configs
    image = after(image, (ORDERS, "2"), (ROUTING, None), (ROUTING, None))
    assert image.labels.count == 2
    assert "record:routing" not in image.labels.resources
    assert replay(EMPTY_IMAGE, list(image_records(image))).labels == image.labels
    assert after(image, (ORDERS, None), (ORDERS._replace(key="acme/owner"), None)).labels == EMPTY_IMAGE.labels


def test_delta_names_the_resources_whose_labels_changed() -> None:
    old = after(EMPTY_IMAGE, (ORDERS, "1"), (ROUTING, "9"), (Label("cluster", "a/b"), "same"))
    delta = MetadataDelta(old, after(old, (ORDERS, "2"), (ROUTING, None), (Label("broker:3", "a/b"), "1")))
    assert delta.labels == KeyChanges(frozenset({"topic:orders", "broker:3"}), frozenset({"record:routing"}))
    assert not delta.configs
    assert delta
    assert not MetadataDelta(old, old).labels


def test_labels_are_shown_and_compared_by_resource() -> None:
    """No value is hidden, as those of a broker's unknown configs are."""
    old = after(EMPTY_IMAGE, (ORDERS, "1"), (ROUTING, "9"))
    new = after(old, (ORDERS, "2"), (ROUTING, None))
    assert summary_json(old, no_secrets)["labels"] == {
        "record:routing": {"acme/version": "9"},
        "topic:orders": {"acme/schema": "1"},
    }
    parts = [part for part in image_difference(old, new, lambda *_: True) if part]
    assert [part.part for part in parts] == ["labels"]
    assert list(parts[0].entries) == [
        Entry("removed", "record:routing", {"acme/version": FieldChange("9", None)}),
        Entry("changed", "topic:orders", {"acme/schema": FieldChange("1", "2")}),
    ]


def test_labels_are_in_the_digest() -> None:
    image = after(EMPTY_IMAGE, (ORDERS, "1"))
    changed = after(image, (ORDERS, "2"))
    digests = {digest_image(one).text for one in (EMPTY_IMAGE, image, changed)}
    assert len(digests) == 3
    assert digest_image(changed, digest_image(image)) == digest_image(changed)
    assert digest_image(after(changed, (ORDERS, None)), digest_image(changed)).value == digest_image(EMPTY_IMAGE).value


def test_replay_removes_no_label_that_no_record_removes() -> None:
    """Kafka's replay knows nothing of labels: what a state is must not depend on who replays the log."""
    topic_id = bytes(range(16))
    image = after(replay(EMPTY_IMAGE, [VersionedRecord(TopicRecord("orders", topic_id), 0)]), (ORDERS, "1"))
    image = replay(image, [VersionedRecord(RemoveTopicRecord(topic_id), 0)])
    assert image.labels.of("topic:orders") == {"acme/schema": "1"}
