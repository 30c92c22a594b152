"""The plan of a local cluster: written when it is made and when it moves to other ports, read at every start."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.regular_files import reading
from quorate.scripts.cluster.members import LocalNode, Members
from quorate.scripts.cluster.ports import LOOPBACK, require_free

PLAN_NAME: Final = "cluster.json"
#: Socket of the process that runs the cluster, as long as it runs.
SOCKET_NAME: Final = "cluster.sock"
_PLAN_BYTES_MAX: Final = 1024 * 1024


class ClusterError(QuorateError):
    """A local cluster cannot be made, started or used. One sentence that says what to do."""


class DamagedPlan(ClusterError):
    """The plan of a local cluster says nothing that can be understood.

    Attributes:
        what: which file that is, and what is wrong with it.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: use another --dir, or name the controllers")
        self.what = what


class _PlanPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedController(_PlanPart):
    """One controller process."""

    id: int = Field(ge=0)
    quorum_port: int = Field(gt=0, lt=65_536)
    http_port: int = Field(gt=0, lt=65_536)
    #: Kafka's text form.
    directory_id: str


class PlannedBrokers(_PlanPart):
    """One process that plays one broker or several."""

    ids: tuple[int, ...] = Field(min_length=1)
    http_port: int = Field(gt=0, lt=65_536)
    #: By position of the id; empty = none.
    racks: tuple[str | None, ...] = ()
    #: Whether they take over registrations that were imported.
    is_twin: bool = False


class ClusterPlan(_PlanPart):
    """All of it."""

    cluster_id: str
    controllers: tuple[PlannedController, ...] = Field(min_length=1)
    brokers: tuple[PlannedBrokers, ...] = ()
    kraft_version: int = 1
    #: Cluster whose metadata this one was made from; None for one of its own.
    source_cluster_id: str | None = None
    source: str | None = None
    #: Whether it speaks TLS on all ports, and its controllers let in whom they know (``quorate.scripts.certificates``).
    is_secured: bool = False

    @property
    def is_import(self) -> bool:
        """Whether it was made from another one's metadata."""
        return self.source_cluster_id is not None or self.source is not None

    def on_ports(self, take: Callable[[], int]) -> Self:
        """The same cluster on other ports, one from each call of ``take``.

        Controllers know each other's ports from their settings; the next leader writes them to the log.
        """
        controllers = tuple(
            one.model_copy(update={"quorum_port": take(), "http_port": take()}) for one in self.controllers
        )
        brokers = tuple(one.model_copy(update={"http_port": take()}) for one in self.brokers)
        return self.model_copy(update={"controllers": controllers, "brokers": brokers})

    def require_ports(self) -> None:
        """Raise ``PortInUse`` if something else listens where a process of this cluster should."""
        for controller in self.controllers:
            require_free(controller.quorum_port, f"controller {controller.id}, quorum")
            require_free(controller.http_port, f"controller {controller.id}, HTTP")
        for brokers in self.brokers:
            require_free(brokers.http_port, f"broker {brokers.ids[0]}, HTTP")

    def save(self, directory: Path) -> None:
        """Write it; whoever sees the file sees a cluster that was made to the end."""
        part = directory / f"{PLAN_NAME}.part"
        with part.open("w", encoding="utf-8") as file:
            file.write(self.model_dump_json(indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.rename(directory / PLAN_NAME)

    @classmethod
    def load(cls, directory: Path) -> ClusterPlan | None:
        """The plan of the cluster in a directory; None if there is none.

        Raises:
            DamagedPlan: the file is there and cannot be understood.
            ClusterError: it cannot be read, or another user has written it: a command that finds it where it is run
                would show its token to whom he names.
        """
        path = directory / PLAN_NAME
        try:
            with reading(str(path)) as file:
                if (owner := os.fstat(file.fileno()).st_uid) not in (0, os.geteuid()):
                    raise ClusterError(
                        f"{path} is user {owner}'s, who may have put it there for others: use another --dir, name the "
                        "controllers, or ask as that user"
                    )
                return cls.model_validate(json.loads(file.read(_PLAN_BYTES_MAX)))
        except FileNotFoundError:
            return None
        except PermissionError:
            raise ClusterError(
                f"{path} may not be read by user {os.geteuid()}{_owner_words(path)}: use another --dir, name the "
                "controllers, or ask as that user"
            ) from None
        except NotADirectoryError:
            raise ClusterError(f"{directory} is no directory: a cluster has one, so use another --dir") from None
        except OSError as error:
            raise ClusterError(f"{path} cannot be read ({error.strerror or error}): use another --dir") from error
        except (UnicodeDecodeError, json.JSONDecodeError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise DamagedPlan(f"{path} cannot be read ({reason})") from error

    @property
    def controller_urls(self) -> tuple[str, ...]:
        """Base URLs of the controllers' HTTP API."""
        return self.members.controller_urls

    @property
    def members(self) -> Members:
        """The processes that it consists of."""
        controllers = {
            c.id: LocalNode("controller", c.id, LOOPBACK, self._url(c.http_port), (c.id,)) for c in self.controllers
        }
        brokers = {
            b.ids[0]: LocalNode("broker", b.ids[0], LOOPBACK, self._url(b.http_port), b.ids) for b in self.brokers
        }
        return Members(self.cluster_id, controllers, brokers)

    def _url(self, port: int) -> str:
        return f"{'https' if self.is_secured else 'http'}://{LOOPBACK}:{port}"


def _owner_words(path: Path) -> str:
    """The owner of a file that may not be read, or of the directory that keeps it from being seen."""
    for shown in (path, *path.parents):
        try:
            owner = shown.stat().st_uid
        except OSError:
            continue
        return f": {'it' if shown == path else shown} is user {owner}'s"
    return ""
