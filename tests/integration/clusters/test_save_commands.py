"""`quorate snapshot save` and `quorate backup` against controllers behind real HTTP servers."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.identity.bearer_tokens import token_line
from quorate.metadata_log.checkpoints.saved_checkpoint import encode_trailer, read_trailer
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.errors import StorageError
from quorate.scripts.cli.snapshot import rotation
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.integration.access.test_permissions import access_of, bearer, token
from tests.integration.commands import Ended, alone, answered, here
from tests.integration.http_stage import CLUSTER_ID, Stage, stage

FIRST, SECOND, THIRD, FOURTH = (f"quorate-2026010{day}T030000Z.checkpoint" for day in (1, 2, 3, 4))


async def topic(s: Stage, name: str) -> None:
    status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name, "num_partitions": 2}]})
    assert (status, reply["topics"][0]["error_code"]) == (200, 0), reply


def digest_in(s: Stage) -> str:
    return digest_image(s.members[1].controller.stable).text


def everybody(s: Stage) -> str:
    return ",".join(s.urls)


async def saved(s: Stage, file: Path, *options: str) -> dict[str, Any]:
    ended = await here(everybody(s), "snapshot", "save", str(file), "--json", *options)
    assert ended.code == exit_codes.DONE, ended
    return answered(ended.out)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def said(ended: Ended, code: int, *parts: str) -> None:
    assert ended.code == code, ended
    for part in parts:
        assert part in ended.said, ended


async def test_saved_file_has_the_committed_state_for_its_owner_alone_and_controllers_wrote_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "state"
    async with stage() as s:
        await s.register(1, 11)
        await topic(s, "orders")
        reply = await saved(s, file)
        assert (reply["digest"], reply["agreeing"], reply["cluster_id"]) == (digest_in(s), [1, 2, 3], CLUSTER_ID)
        assert reply["end_offset"] == s.quorum.committed
        assert not [info for member in s.members.values() for info in member.checkpoints.infos]
    assert digest_image(load_image(file)).text == reply["digest"]
    assert load_image(file).provenance.end_offset == reply["end_offset"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (file.stat().st_size, names(tmp_path)) == (reply["size"], [file.name])
    text = await alone("snapshot", "verify", str(file))
    said(text, exit_codes.DONE)
    assert f"  saved from cluster {CLUSTER_ID}, " in text.out
    shown = await alone("topics", "list", "--from", str(file))
    assert "orders" in shown.out


async def test_state_behind_a_checkpoint_is_saved_too_and_by_who_does_not_lead(tmp_path: Path) -> None:
    async with stage() as s:
        await s.register(1, 11)
        assert (await here(s.urls[1], "snapshot", "take")).code == exit_codes.DONE
        await topic(s, "after")
        reply = await saved(s, tmp_path / "state")
        assert (reply["digest"], reply["node_id"]) == (digest_in(s), 2)
        await s.members[2].stop_serving()
        await s.members[3].stop_serving()
        again = await saved(s, tmp_path / "again")
        assert (again["digest"], again["agreeing"], again["node_id"]) == (digest_in(s), [1], 1)


async def test_file_that_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"precious")
    async with stage(1) as s:
        refused = await here(s.urls[0], "snapshot", "save", str(file))
        said(refused, exit_codes.REFUSED, f"{file} is there already", "--force")
        assert (file.read_bytes(), names(tmp_path)) == (b"precious", [file.name])
        await saved(s, file, "--force")
        assert digest_image(load_image(file)).text == digest_in(s)
        strange = tmp_path / "00000000000000000061-0000000001.checkpoint"
        said(await here(s.urls[0], "snapshot", "save", str(strange)), exit_codes.REFUSED, "metadata directory")
        nowhere = await here(s.urls[0], "snapshot", "save", str(tmp_path / "no" / "where"))
        said(nowhere, exit_codes.REFUSED, "No such file or directory")
        assert names(tmp_path) == [file.name]


async def test_part_of_a_run_that_was_cut_short_is_taken_over_and_one_that_is_written_is_not(tmp_path: Path) -> None:
    file, part = tmp_path / "state", tmp_path / "state.part"
    part.write_bytes(b"half" * 1000)
    part.chmod(0o644)
    async with stage(1) as s:
        with part.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            busy = await here(s.urls[0], "snapshot", "save", str(file))
            said(busy, exit_codes.REFUSED, f"another process is writing {part}")
            assert part.stat().st_size == 4000
        await saved(s, file)
    assert (stat.S_IMODE(file.stat().st_mode), names(tmp_path)) == (0o600, [file.name])
    (tmp_path / "elsewhere").write_bytes(b"precious")
    part.symlink_to(tmp_path / "elsewhere")
    async with stage(1) as s:
        assert (await here(s.urls[0], "snapshot", "save", str(file), "--force")).code == exit_codes.REFUSED
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


async def test_bytes_that_rot_on_their_way_to_the_disk_get_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = os.fsync

    def rot(descriptor: int) -> None:
        os.pwrite(descriptor, b"\xff", 200)
        synced(descriptor)

    async with stage(1) as s:
        monkeypatch.setattr(os, "fsync", rot)
        ended = await here(s.urls[0], "snapshot", "save", str(tmp_path / "state"))
    said(ended, exit_codes.REFUSED, "the disk does not give back what was written", "nothing is left of it")
    assert not names(tmp_path)


async def test_whole_file_of_another_state_in_the_place_of_the_one_that_was_written_gets_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses writes gives back what was there before, which is sound by itself."""
    synced = os.fsync
    async with stage(1) as s:
        await saved(s, tmp_path / "before")
        before = (tmp_path / "before").read_bytes()
        await s.register(1, 11)

        def lose(descriptor: int) -> None:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, before, 0)
            synced(descriptor)

        monkeypatch.setattr(os, "fsync", lose)
        ended = await here(s.urls[0], "snapshot", "save", str(tmp_path / "state"))
    said(ended, exit_codes.REFUSED, "the disk does not give back what was written: its content has the digest")
    assert names(tmp_path) == ["before"]


async def test_state_that_a_controller_has_otherwise_is_not_saved(tmp_path: Path) -> None:
    async with stage(2) as s:
        await s.register(1, 11)
        other = s.members[2].digests
        real = other.at

        async def lies(*arguments: Any, **options: Any) -> tuple[int, str]:
            offset, _ = await real(*arguments, **options)
            return offset, "ab" * 32

        other.at = lies  # type: ignore[method-assign]
        ended = await here(everybody(s), "snapshot", "save", str(tmp_path / "state"))
    said(ended, exit_codes.REFUSED, "controller 2 has a state with digest abab", "nothing is saved")
    assert not names(tmp_path)


async def test_nobody_there_is_exit_code_3_and_nothing_is_left(tmp_path: Path) -> None:
    async with stage(1) as s:
        await s.members[1].stop_serving()
        ended = await here(s.urls[0], "snapshot", "save", str(tmp_path / "state"))
        timer = await here(s.urls[0], "backup", "--to", str(tmp_path / "backups"))
    assert (ended.code, timer.code) == (exit_codes.UNREACHABLE, exit_codes.UNREACHABLE)
    assert (names(tmp_path), names(tmp_path / "backups")) == (["backups"], [])


def cut_after_the_last_batch_but_one(data: bytes, file: Path) -> bytes:
    return data[: [batch.position for batch in iter_batches(find_files(file)[0])][-1]]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data, file: data[:-1],
        lambda data, file: data[: len(data) // 2],
        cut_after_the_last_batch_but_one,
        lambda data, file: data[:150] + bytes([data[150] ^ 1]) + data[151:],
        lambda data, file: data + b"\n",
    ],
)
async def test_damaged_file_is_neither_verified_nor_restored(
    tmp_path: Path, damage: Callable[[bytes, Path], bytes]
) -> None:
    file, target = tmp_path / "state", tmp_path / "restored"
    async with stage(1) as s:
        await s.register(1, 11)
        await topic(s, "orders")
        await saved(s, file)
    file.write_bytes(damage(file.read_bytes(), file))
    for command in (
        ("snapshot", "verify", str(file)),
        ("snapshot", "restore", "--from", str(file), "--nodes", "3", "--to", str(target)),
    ):
        assert (await alone(*command)).code == exit_codes.REFUSED
    assert not target.exists()
    with pytest.raises(StorageError):
        load_image(file)


async def test_trailer_of_another_state_is_found(tmp_path: Path) -> None:
    file = tmp_path / "state"
    async with stage(1) as s:
        await saved(s, file)
    trailer = read_trailer(str(file))
    assert trailer is not None
    content = file.read_bytes()[: trailer.size]
    for forged, word in ((trailer.digest[::-1], "digest"), (trailer.digest, "CRC")):
        crc = trailer.crc ^ (word == "CRC")
        lying = encode_trailer(type(trailer)(trailer.id, trailer.size, crc, forged, trailer.cluster_id, 0, 0))
        file.write_bytes(content + lying)
        ended = await alone("snapshot", "verify", str(file))
        assert (ended.code, f"{word} " in ended.out, "its trailer says" in ended.out) == (
            exit_codes.REFUSED,
            True,
            True,
        )


async def test_who_backs_up_needs_to_read_the_log_and_describe_the_cluster_and_nothing_more(tmp_path: Path) -> None:
    tokens, secret, target = tmp_path / "tokens", tmp_path / "ben.token", tmp_path / "backups"
    known = "".join(f"{token_line(token(who), who)}\n" for who in ("User:root", "User:ben"))
    for file, text in ((tokens, known), (secret, token("User:ben"))):
        file.touch(0o600)
        file.write_text(text)
    async with stage(1, access=lambda node_id: access_of(tokens, node_id)) as s:
        s.session.headers.update(bearer("User:root"))
        for missing in ("DESCRIBE", "CLUSTER_ACTION"):
            ended = await here(s.urls[0], "backup", "--to", str(target), "--secret-file", str(secret))
            said(ended, exit_codes.REFUSED, f"User:ben needs {missing} on the cluster")
            assert not names(target)
            acl = {"resource_type": "CLUSTER", "resource_name": "kafka-cluster", "principal": "User:ben"}
            wanted = {"creations": [{**acl, "operation": missing, "permission_type": "ALLOW"}]}
            assert (await s.ask(1, "POST", "/v1/acls", wanted))[0] == 200
        ended = await here(s.urls[0], "backup", "--to", str(target), "--secret-file", str(secret))
    assert (ended.code, len(names(target))) == (exit_codes.DONE, 1), ended


# --- backup ------------------------------------------------------------------------------------------


async def backed_up(s: Stage, directory: Path, *options: str) -> Ended:
    return await here(everybody(s), "backup", "--to", str(directory), *options)


async def test_oldest_backups_go_and_the_new_one_stays_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "a" / "backups"
    async with stage(1) as s:
        for name in (FIRST, SECOND):
            monkeypatch.setattr(rotation, "_FORM", name)
            ended = await backed_up(s, directory, "--keep", "2")
            assert (ended.code, ended.err, len(ended.out.splitlines())) == (exit_codes.DONE, "", 1), ended
        assert names(directory) == [FIRST, SECOND]
        left = directory / f"{FIRST}.part"
        left.write_bytes(b"half")
        os.mkfifo(directory / f"{SECOND}.part")  # nothing that a run could have left
        monkeypatch.setattr(rotation, "_FORM", THIRD)
        third = json.loads((await backed_up(s, directory, "--keep", "2", "--json")).out)
        assert (third["removed"], third["kept"], third["digest"]) == ([FIRST], 2, digest_in(s))
        assert names(directory) == [SECOND, f"{SECOND}.part", THIRD]
        (directory / f"{SECOND}.part").unlink()
        monkeypatch.setattr(rotation, "_FORM", "quorate-20200101T000000Z.checkpoint")  # the clock was set back
        assert (await backed_up(s, directory, "--keep", "1")).code == exit_codes.DONE
        assert names(directory) == ["quorate-20200101T000000Z.checkpoint"]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


async def test_nothing_goes_where_the_new_backup_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(1) as s:
        for name in (FIRST, SECOND):
            monkeypatch.setattr(rotation, "_FORM", name)
            await backed_up(s, tmp_path)
        again = await backed_up(s, tmp_path, "--keep", "1")  # within the same second
        said(again, exit_codes.REFUSED, f"{SECOND} is there already")
        assert names(tmp_path) == [FIRST, SECOND]
        monkeypatch.setattr(rotation, "_FORM", THIRD)
        monkeypatch.setattr(os, "fsync", lambda descriptor: os.pwrite(descriptor, b"\xff", 200))
        assert (await backed_up(s, tmp_path, "--keep", "1")).code == exit_codes.REFUSED
    assert names(tmp_path) == [FIRST, SECOND]


async def test_directory_with_anything_else_or_of_another_cluster_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(1) as s:
        monkeypatch.setattr(rotation, "_FORM", FIRST)
        await backed_up(s, tmp_path)
        (tmp_path / "notes.txt").write_bytes(b"precious")
        said(await backed_up(s, tmp_path, "--keep", "1"), exit_codes.REFUSED, "notes.txt", "nothing else")
        (tmp_path / "notes.txt").unlink()
        trailer = read_trailer(str(tmp_path / FIRST))
        assert trailer is not None
        content = (tmp_path / FIRST).read_bytes()[: trailer.size]
        other = type(trailer)(trailer.id, trailer.size, trailer.crc, trailer.digest, "another", 0, 0)
        (tmp_path / FIRST).write_bytes(content + encode_trailer(other))
        monkeypatch.setattr(rotation, "_FORM", SECOND)
        refused = await backed_up(s, tmp_path, "--keep", "1")
        said(refused, exit_codes.REFUSED, f"of cluster {CLUSTER_ID}, and what is there is of another")
        assert names(tmp_path) == [FIRST]
        own = type(trailer)(trailer.id, trailer.size, trailer.crc, trailer.digest, CLUSTER_ID, 0, 0)
        (tmp_path / SECOND).write_bytes(content + encode_trailer(own))
        monkeypatch.setattr(rotation, "_FORM", THIRD)
        refused = await backed_up(s, tmp_path, "--keep", "1")
        said(refused, exit_codes.REFUSED, "has backups of several clusters", "another", CLUSTER_ID)
        assert names(tmp_path) == [FIRST, SECOND]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "named"),
    [(cut, "does not end as a backup does"), (flip, "its bytes have the CRC")],
    ids=["cut short", "one bit in the middle"],
)
async def test_damaged_backup_is_named_does_not_count_and_stays(
    damage: Callable[[Path], None], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(1) as s:
        for name in (FIRST, SECOND, THIRD):
            monkeypatch.setattr(rotation, "_FORM", name)
            await backed_up(s, tmp_path)
            if name == FIRST:
                damage(tmp_path / FIRST)
        monkeypatch.setattr(rotation, "_FORM", FOURTH)
        ended = await backed_up(s, tmp_path, "--keep", "2")
    assert (ended.code, names(tmp_path)) == (exit_codes.DONE, [FIRST, THIRD, FOURTH])
    assert f"{FIRST}: " in ended.err
    assert named in ended.err
