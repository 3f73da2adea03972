"""Reads trainings: the log of `stratagem train` (JSON lines), or the document of its --out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .errors import InputError
from .typed_json import decode, read_text

SCHEMA = "stratagem-train/1"
# What must be equal for curves to be laid over each other.
_WORK = (
    "model", "dtype", "global_batch_size", "image_size", "sequence_length", "features", "outputs",
    "dropout",
    "targets", "loss", "optimizer", "learning_rate", "momentum", "weight_decay", "clip_gradients",
    "seed",
)  # fmt: skip


class Point(msgspec.Struct, frozen=True):
    """A loss, and where the training stood: steps, samples, seconds of steps.

    `data_wait_ms`: how long the line's steps waited for their batches; None: it does not say.
    `skipped`: how many of them updated nothing, because gradients were not finite.
    """

    step: int
    samples: int
    seconds: float
    loss: float
    data_wait_ms: float | None = None
    skipped: int = msgspec.field(name="skipped_updates", default=0)


class _Start(msgspec.Struct):
    name: str
    config: dict[str, Any]
    training_samples: int = 0


class _Validation(msgspec.Struct):
    step: int
    loss: float


class _Event(msgspec.Struct):
    event: str = ""
    split: str = "validation"  # of an evaluation; others are not drawn


class _Log(msgspec.Struct):
    start: msgspec.Raw
    events: list[msgspec.Raw]


class _Document(msgspec.Struct):
    trainings: list[_Log]


_READ = {"start": _Start, "step": Point, "evaluation": _Validation}


@dataclass(frozen=True)
class Training:
    """One strategy's training: a loss for each line of the log, and the validation's."""

    name: str
    strategy: str
    config: dict[str, Any]
    training_samples: int
    points: list[Point]
    evaluations: list[Point]

    @property
    def waiting(self) -> float | None:
        """The part of the steps' time that they waited for their batches; None: unknown."""
        seconds = self.points[-1].seconds
        waits = [point.data_wait_ms for point in self.points if point.data_wait_ms is not None]
        if len(waits) < len(self.points) or seconds <= 0:
            return None
        return sum(waits) / 1e3 / seconds


def is_training(path: Path) -> bool:
    """Whether the file begins as a training's does."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(200)
    except (OSError, UnicodeDecodeError):
        return False
    return head.startswith('{"event":"start"') or f'"{SCHEMA}"' in head


def load_trainings(paths: list[Path]) -> list[Training]:
    """Every training of the files in their order.

    InputError for one without a step, and where two trained other work: their curves do not belong
    on one picture.
    """
    trainings = [training for path in paths for training in _load(path)]
    first = trainings[0]
    for other in trainings[1:]:
        for key in _WORK:
            mine, its = first.config.get(key), other.config.get(key)
            if mine != its:
                raise InputError(
                    f"{other.name}: trained with {key} {its}, {first.name} with {mine}; only "
                    "trainings of the same work are laid over each other"
                )
    return trainings


def _load(path: Path) -> list[Training]:
    text = read_text(path)
    if text.startswith('{"event"'):
        # A line that was cut short is that of a step that is not done.
        lines = [line for line in text.splitlines() if line.endswith("}")]
    else:
        logs = decode(text, _Document, str(path)).trainings
        lines = [line for log in logs for line in (log.start, *log.events)]
    events = []
    for line in lines:
        head = decode(line, _Event, str(path))
        if head.event in _READ and head.split == "validation":
            events.append(decode(line, _READ[head.event], f"{path}: {head.event}"))
    return _trainings(events, path)


def _trainings(events: list[_Start | Point | _Validation], path: Path) -> list[Training]:
    """One that goes on after a checkpoint is one with what came before it."""
    found: list[Training] = []
    latest: dict[int, Point] = {}
    for event in events:
        if isinstance(event, _Start):
            if not found or found[-1].name != event.name:
                strategy, samples = str(event.config.get("strategy")), event.training_samples
                found.append(Training(event.name, strategy, event.config, samples, [], []))
                latest = {0: Point(0, 0, 0.0, 0.0)}
        elif found and isinstance(event, Point):
            found[-1].points.append(event)
            latest[event.step] = event
        elif found and event.step in latest:
            at = latest[event.step]
            found[-1].evaluations.append(Point(at.step, at.samples, at.seconds, event.loss))
    for training in found:
        if not training.points:
            raise InputError(f"{path}: {training.name} has no step; nothing to draw")
    if not found:
        raise InputError(f"{path}: holds no training")
    return found
