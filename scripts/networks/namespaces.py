"""Network namespaces without a privilege: one for this process, one with an interface of its own for each machine.

An interface is a TAP device: what its machine sends is read from a descriptor, and what is written there arrives. So
whoever holds the descriptors is the network (``switch``); nothing outside the namespaces is touched, and the kernel
takes all of it away with the last process. Linux: unshare(2), setns(2), netdevice(7), and tuntap.rst of the kernel.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from quorate.metadata_log.errors import QuorateError

_CLONE_NEWUSER: Final = 0x1000_0000
_CLONE_NEWNET: Final = 0x4000_0000
_TUNSETIFF: Final = 0x4004_54CA
_IFF_TAP: Final = 0x0002
_IFF_NO_PI: Final = 0x1000
_IFF_UP: Final = 0x1
_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_SIOCSIFHWADDR: Final = 0x8924
_ARPHRD_ETHER: Final = 1
_INTERFACE: Final = "wire0"
#: Every kernel has it and lets anybody choose it, so runs are alike; the newer ones get better through loss.
_CONGESTION_CONTROL: Final = "reno"
_SYSCTL: Final = Path("/proc/sys/net")
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


class NotAllowed(QuorateError):
    """This kernel, or whoever set it up, gives us no namespaces."""


@dataclass(frozen=True, slots=True)
class MachineNamespace:
    """A machine's namespace. All descriptors are this process's."""

    address: str
    #: The namespace itself, for ``enter``.
    namespace: int
    #: Its interface's other end.
    tap: int
    #: Its /proc/net/dev.
    counters: int

    def enter(self) -> None:
        """Move the calling thread there; also between fork and exec."""
        if _libc.setns(self.namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def dropped(self) -> int:
        """Frames that the machine wanted to send and the kernel dropped, as the switch did not take them in time."""
        lines = os.pread(self.counters, 65_536, 0).decode("ascii").splitlines()
        (fields,) = [line.split() for line in lines if line.strip().startswith(f"{_INTERFACE}:")]
        # Name, eight of what was received, eight of what was sent: bytes, packets, errors, drops, ...
        return int(fields[12])

    def close(self) -> None:
        """Let go of it; it goes when no process is in it any more."""
        for descriptor in (self.namespace, self.tap, self.counters):
            os.close(descriptor)


def isolate() -> None:
    """Give this process, which may not have started a thread yet, a user and a network namespace of its own.

    Raises:
        NotAllowed: that is not possible here.
    """
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        raise NotAllowed(f"no user and network namespace: {os.strerror(ctypes.get_errno())}")
    try:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1", encoding="ascii")
        make_place("10.0.0.1", 1).close()
    except OSError as error:
        raise NotAllowed(f"a namespace without rights in it: {error}") from error


def make_place(address: str, number: int) -> MachineNamespace:
    """A namespace with a loopback and one interface in a network of 256 addresses; ``number``: its MAC's last byte.

    Raises:
        NotAllowed: the kernel refuses.
    """
    try:
        return _in_thread(partial(_make_place, address, number))
    except OSError as error:
        raise NotAllowed(f"no TAP device in a network namespace: {error}") from error


def _in_thread(work: Callable[[], T]) -> T:
    """In a thread that ends with it: whichever namespace it went to."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _make_place(address: str, number: int) -> MachineNamespace:
    if _libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    # A device belongs to the namespace of the thread that opened /dev/net/tun, as a file below /proc/net does.
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", _INTERFACE.encode(), _IFF_TAP | _IFF_NO_PI))
    for setting, value in (
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/tcp_congestion_control", _CONGESTION_CONTROL),
    ):
        with suppress(OSError):  # a kernel without IPv6
            (_SYSCTL / setting).write_text(value, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _raise_up(control, "lo")
        _set(control, _SIOCSIFHWADDR, struct.pack("H6s", _ARPHRD_ETHER, mac_of(number)))
        _set(control, _SIOCSIFADDR, _inet(address))
        _set(control, _SIOCSIFNETMASK, _inet("255.255.255.0"))
        _raise_up(control, _INTERFACE)
    namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    counters = os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC)
    return MachineNamespace(address, namespace, tap, counters)


def mac_of(number: int) -> bytes:
    """A machine's MAC: locally administered, with its number at the end."""
    return bytes((0x02, 0, 0, 0, 0, number))


def _inet(address: str) -> bytes:
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def _set(control: socket.socket, request: int, value: bytes) -> None:
    fcntl.ioctl(control, request, struct.pack("16s24s", _INTERFACE.encode(), value))


def _raise_up(control: socket.socket, name: str) -> None:
    asked = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16s24x", name.encode()))
    flags: int = struct.unpack_from("H", asked, 16)[0]
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), flags | _IFF_UP))
