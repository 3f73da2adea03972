"""Reads trainings: the log of `stratagem train` (JSON lines), or the document of its --out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .errors import InputError
from .json_members import kind_of, member, number, parse_object, read_json

SCHEMA = "stratagem-train/1"
# What must be equal for curves to be laid over each other.
_WORK = (
    "model", "dtype", "global_batch_size", "image_size", "sequence_length", "features", "outputs",
    "targets", "loss", "optimizer", "learning_rate", "momentum", "weight_decay", "clip_gradients",
    "seed",
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A loss, and where the training stood: steps, samples, seconds of steps.

    `data_wait_ms`: how long the line's steps waited for their batches; None: it does not say.
    `skipped`: how many of them updated nothing, because gradients were not finite.
    """

    step: int
    samples: int
    seconds: float
    loss: float
    data_wait_ms: float | None = None
    skipped: int = 0


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
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected JSON") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if lines and lines[0].startswith('{"event"'):
        events = [parse_object(line, str(path)) for line in lines if line.endswith("}")]
    else:
        events = list(_events(read_json(path), path))
    return _trainings(events, path)


def _events(document: dict, path: Path) -> Iterator[dict]:
    """What the logs of a document's trainings hold."""
    for training in member(document, "trainings", list, str(path)):
        if not isinstance(training, dict):
            raise InputError(f"{path}: trainings: expected objects, found {kind_of(training)}")
        yield member(training, "start", dict, f"{path}: trainings")
        for event in member(training, "events", list, f"{path}: trainings"):
            if not isinstance(event, dict):
                raise InputError(f"{path}: events: expected objects, found {kind_of(event)}")
            yield event


def _trainings(events: list[dict], path: Path) -> list[Training]:
    """One that goes on after a checkpoint is one with what came before it."""
    found: list[Training] = []
    latest: dict[int, Point] = {}
    for event in events:
        kind = event.get("event")
        if kind == "start":
            name = str(event.get("name"))
            if not found or found[-1].name != name:
                config = member(event, "config", dict, f"{path}: start")
                samples = int(number(event, "training_samples", f"{path}: start") or 0)
                strategy = str(config.get("strategy"))
                found.append(Training(name, strategy, config, samples, [], []))
                latest = {0: Point(0, 0, 0.0, 0.0)}
        elif kind == "step" and found:
            point = Point(*(_value(event, key, path) for key in
                            ("step", "samples", "seconds", "loss")))  # fmt: skip
            waited = number(event, "data_wait_ms", f"{path}: step")
            skipped = int(number(event, "skipped_updates", f"{path}: step") or 0)
            found[-1].points.append(replace(point, data_wait_ms=waited, skipped=skipped))
            latest[point.step] = point
        elif kind == "evaluation" and event.get("split") == "validation" and found:
            at = latest.get(_value(event, "step", path))
            if at is not None:
                loss = _value(event, "loss", path)
                found[-1].evaluations.append(Point(at.step, at.samples, at.seconds, loss))
    for training in found:
        if not training.points:
            raise InputError(f"{path}: {training.name} has no step; nothing to draw")
    if not found:
        raise InputError(f"{path}: holds no training")
    return found


def _value(event: dict, key: str, path: Path) -> Any:
    value = number(event, key, f"{path}: {event.get('event')}")
    if value is None:
        raise InputError(f"{path}: a line of {event.get('event')} has no {key}")
    return int(value) if key in ("step", "samples") else value
