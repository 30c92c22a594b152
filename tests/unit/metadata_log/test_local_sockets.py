"""Unix sockets: for one user alone, and no other process's is taken or removed."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from quorate.metadata_log.local_sockets import PATH_BYTES_MAX, LocalSocket, SocketUnusable


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def dead_socket(path: Path) -> None:
    """As a process leaves it that was killed."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(str(path))
        except OSError:
            return False
        return True


def test_socket_is_for_its_user_alone_and_goes_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "sockets" / "one.sock"
    before = os.umask(0)
    try:
        opened = LocalSocket.open(path, 5)
    finally:
        os.umask(before)
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert answers(path)
    opened.close()
    assert not path.exists()


def test_socket_of_a_process_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "one.sock"
    dead_socket(path)
    assert path.is_socket()
    opened = LocalSocket.open(path, 5)
    assert answers(path)
    opened.close()


def test_socket_at_which_somebody_listens_is_left_to_him(tmp_path: Path) -> None:
    path = tmp_path / "one.sock"
    first = LocalSocket.open(path, 5)
    for _ in range(2):
        with pytest.raises(SocketUnusable, match="another process"):
            LocalSocket.open(path, 5)
    assert answers(path)
    first.close()


def test_socket_whose_queue_is_full_is_not_taken_for_a_dead_one(tmp_path: Path) -> None:
    path = tmp_path / "one.sock"
    first = LocalSocket.open(path, 0)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for one in waiting:
        one.setblocking(False)
        one.connect_ex(str(path))
    with pytest.raises(SocketUnusable, match="another process"):
        LocalSocket.open(path, 5)
    for one in waiting:
        one.close()
    first.close()


@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_socket_is_not_removed(tmp_path: Path, *, is_link: bool) -> None:
    path, precious = tmp_path / "one.sock", tmp_path / "precious"
    precious.write_text("kept")
    if is_link:
        path.symlink_to(precious)
    else:
        path.write_text("kept")
    with pytest.raises(SocketUnusable, match="is there and is no socket"):
        LocalSocket.open(path, 5)
    assert path.read_text() == "kept"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_directory_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "open"
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(SocketUnusable, match="others could put another socket in its place"):
        LocalSocket.open(directory / "one.sock", 5)
    assert list(directory.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "foreign"
    directory.mkdir(mode=0o700)
    os.chown(directory, 65_534, -1)
    with pytest.raises(SocketUnusable, match="others could put another socket in its place"):
        LocalSocket.open(directory / "one.sock", 5)
    assert list(directory.iterdir()) == []


def test_path_that_is_too_long_is_refused_with_both_lengths(tmp_path: Path) -> None:
    fits = tmp_path / ("x" * (PATH_BYTES_MAX - len(os.fsencode(tmp_path)) - 1))
    LocalSocket.open(fits, 5).close()
    with pytest.raises(SocketUnusable, match=f"has {PATH_BYTES_MAX + 1} bytes, and the path of a socket 107 at most"):
        LocalSocket.open(fits.with_name(fits.name + "x"), 5)


def test_place_where_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(SocketUnusable, match=r"one\.sock: No such file or directory"):
        LocalSocket.open(tmp_path / "a" / "b" / "one.sock", 5)


def test_closing_leaves_the_socket_that_has_taken_the_place(tmp_path: Path) -> None:
    path = tmp_path / "one.sock"
    first = LocalSocket.open(path, 5)
    path.unlink()
    second = LocalSocket.open(path, 5)
    first.close()
    assert answers(path)
    second.close()
    assert not path.exists()
