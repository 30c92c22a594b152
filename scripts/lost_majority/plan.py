"""The plan of a recovery, as a file that a person reads before it is carried out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.limits import EPOCH_MAX
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory, SurveyPart, fingerprint
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.judgement import Judgement
from quorate.scripts.lost_majority.numbers import moved_on
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image

#: Between the highest epoch that anybody knew and the first one of the rebuilt quorum: whatever the lost voters
#: elected meanwhile is below it.
EPOCHS_APART: Final = 1_000
#: The same for offsets, where an older state takes the place of a newer one.
OFFSETS_APART: Final = 1_000_000
_EPOCH_MAX: Final = EPOCH_MAX - 2 * EPOCHS_APART
_PLAN_BYTES_MAX: Final = 16 * 1024 * 1024


class PlannedInput(SurveyPart):
    """A directory that was looked at; apply refuses when it has changed since."""

    path: str
    fingerprint: str


class PlannedVoter(SurveyPart):
    """A voter of the rebuilt quorum."""

    node_id: int = Field(ge=0)
    #: Its metadata directory; what is there now is kept beside it.
    directory: str
    #: Made anew, so that a directory from before is another.
    directory_id: str


class RecoveryPlan(SurveyPart):
    """All that apply and verify need to know."""

    version: Literal[2] = 2
    made_at_ms: int
    cluster_id: str
    #: The stored epoch of all voters; the first leader's is above it.
    generation: int = Field(gt=0, le=_EPOCH_MAX)
    inputs: tuple[PlannedInput, ...]
    #: Where the state comes from.
    source: str
    #: The directory whose log goes on; None: a state after which records are or may be lost, moved on in its offsets
    #: and in the numbers that it gives out (``numbers``).
    seed: SurveyedDirectory | None
    #: The first offset whose record is or may be lost, though it was acknowledged; None: nothing is.
    lost_from: int | None
    #: End of the state in the source; digest of what is made of it.
    state_offset: int
    digest: str
    #: Where the log goes on.
    end_offset: int
    kraft_version: int
    voters: tuple[PlannedVoter, ...] = Field(min_length=1)
    #: HTTP addresses of the controllers as they were: none of them may be a majority that answers.
    controllers: tuple[str, ...]
    voter_count: int
    #: A directory of `quorate up`, whose plan is brought up to date.
    local_cluster: str | None
    #: What is kept and what may be lost, in words.
    sentences: tuple[str, ...]

    def save(self, path: Path) -> None:
        """Write it to a new file.

        Raises:
            RecoveryError: there is something of that name, or it cannot be written.
        """
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(self.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError as error:
            raise RecoveryError(f"{path} is there already: remove it, or name another file with --out") from error
        except OSError as error:
            raise RecoveryError(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path) -> RecoveryPlan:
        """The plan in a file.

        Raises:
            RecoveryError: there is none.
        """
        try:
            with path.open(encoding="utf-8") as file:
                return cls.model_validate(json.loads(file.read(_PLAN_BYTES_MAX)))
        except FileNotFoundError as error:
            raise RecoveryError(f"{path}: no such file; make a plan with: quorate recover plan") from error
        except (OSError, ValueError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise RecoveryError(
                f"{path} is no recovery plan ({reason}); make one with: quorate recover plan"
            ) from error


class Targets(SurveyPart):
    """The future voters and their directories."""

    #: (id, directory), by id.
    voters: tuple[tuple[int, str], ...]
    controllers: tuple[str, ...] = ()
    local_cluster: str | None = None


def plan_from_survivors(judgement: Judgement, surveyed: Sequence[SurveyedDirectory], targets: Targets) -> RecoveryPlan:
    """Go on with the seed's log; where records may be lost, with its state.

    Raises:
        RecoveryError: the seed does not say whose it is, a directory is in use, or epochs have come to their end.
    """
    seed = judgement.seed
    if seed.cluster_id is None or seed.digest is None:
        raise RecoveryError(f"{seed.name} does not say of which cluster it is: restore its meta.properties")
    if not judgement.is_complete:
        image = state_of(Path(seed.path), seed.state_offset)
        return _plan_of_state(image, seed.path, judgement, surveyed, targets, seed.state_offset, judgement.sentences)
    return _plan(
        judgement,
        surveyed,
        targets,
        cluster_id=seed.cluster_id,
        source=seed.path,
        seed=seed,
        lost_from=None,
        state_offset=seed.state_offset,
        digest=seed.digest,
        end_offset=seed.end_offset,
        kraft_version=seed.kraft_version,
        sentences=judgement.sentences,
    )


def plan_from_backup(
    backup: Path, offset: int | None, judgement: Judgement, surveyed: Sequence[SurveyedDirectory], targets: Targets
) -> RecoveryPlan:
    """Take an older state, at offsets and epochs above everything that was ever seen.

    Raises:
        RecoveryError: no directory that was looked at says which cluster it is to be, one is in use, or the backup was
            saved from another cluster.
        StorageError, ReplayError, ImageNotAvailable: the backup cannot be read, or not at that offset.
    """
    saved = find_files(backup)[0].saved
    if saved is not None and judgement.seed.cluster_id not in (None, saved.cluster_id):
        raise RecoveryError(
            f"{backup} was saved from cluster {saved.cluster_id}, and this is {judgement.seed.cluster_id}:"
            " name a backup of this one"
        )
    passed_over: list[PassedOver] = []
    image = load_image(backup, offset, passed_over.append)
    provenance = image.provenance
    back = max(0, judgement.known_commit - provenance.end_offset)
    undone = f"{back:,} records after it that are known to have been committed are undone"
    said = (f"the state is that of {backup} at offset {provenance.end_offset}: {undone}", *map(str, passed_over))
    seed = judgement.seed
    is_all = judgement.is_complete and (provenance.end_offset, provenance.epoch) >= (seed.end_offset, seed.end_epoch)
    made = _plan_of_state(
        image,
        str(backup),
        judgement,
        surveyed,
        targets,
        None if is_all else provenance.end_offset,
        (*said, *judgement.sentences),
    )
    inputs = tuple(PlannedInput(path=str(path), fingerprint=fingerprint(path)) for path in _sources(backup))
    return made.model_copy(update={"inputs": (*made.inputs, *inputs)})


def _plan_of_state(
    image: MetadataImage,
    source: str,
    judgement: Judgement,
    surveyed: Sequence[SurveyedDirectory],
    targets: Targets,
    lost_from: int | None,
    sentences: Sequence[str],
) -> RecoveryPlan:
    """Take a state on, at offsets, epochs and numbers above everything that was ever seen."""
    cluster_id = judgement.seed.cluster_id
    if cluster_id is None:
        raise RecoveryError("no directory that was given says which cluster it is: give one with meta.properties")
    highest = max(judgement.highest_offset, image.provenance.end_offset)
    end_offset = -(-(highest + OFFSETS_APART) // OFFSETS_APART) * OFFSETS_APART
    moved = f"the log goes on at offset {end_offset}: nobody who followed the log before goes back in it"
    numbers = "epochs of partitions and producer ids go on far above all that may have been given out"
    return _plan(
        judgement,
        surveyed,
        targets,
        cluster_id=cluster_id,
        source=source,
        seed=None,
        lost_from=lost_from,
        state_offset=image.provenance.end_offset,
        digest=digest_image(moved_on(image)).text,
        end_offset=end_offset,
        kraft_version=image.kraft.version,
        sentences=(*sentences, moved, numbers),
    )


def state_of(source: Path, offset: int) -> MetadataImage:
    """A state to go on from; at offset 0 there is none yet.

    Raises:
        StorageError, ReplayError, ImageNotAvailable: as ``load_image``.
    """
    return load_image(source, offset) if offset else EMPTY_IMAGE


def _sources(backup: Path) -> list[Path]:
    """Directories whose files a state is made of; or the one file, which may lie beside anything."""
    files = find_files(backup)
    return [backup] if files[0].saved is not None else sorted({file.path.parent for file in files})


def _plan(
    judgement: Judgement, surveyed: Sequence[SurveyedDirectory], targets: Targets, **facts: object
) -> RecoveryPlan:
    for one in surveyed:
        if one.is_in_use:
            raise RecoveryError(f"{one.path} is in use, and moves on: stop its controller first, then plan")
    generation = judgement.highest_epoch + EPOCHS_APART
    if generation > _EPOCH_MAX:
        raise RecoveryError(f"epoch {judgement.highest_epoch} is too near to the last one there can be, {_EPOCH_MAX}")
    return RecoveryPlan.model_validate(
        {
            "made_at_ms": time.time_ns() // 1_000_000,
            "generation": generation,
            "inputs": [{"path": one.path, "fingerprint": one.fingerprint} for one in surveyed],
            "voters": [
                {"node_id": node, "directory": directory, "directory_id": new_id()}
                for node, directory in targets.voters
            ],
            "controllers": targets.controllers,
            "voter_count": len(judgement.voters) or len(targets.voters),
            "local_cluster": targets.local_cluster,
            **facts,
        }
    )
