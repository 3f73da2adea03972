"""What each device did in one step: the `timeline` of a repetition or of a simulation."""

from dataclasses import dataclass

from .errors import InputError
from .json_members import kind_of, member, number, whole_number


@dataclass(frozen=True)
class Action:
    """One box of a timeline: what a device did from `start_ms` to `end_ms` of the step.

    `count` is above 1 where a crowded chart shows so many actions of a kind as one box.
    """

    device: str
    kind: str
    stage: int | None
    micro_batch: int | None
    start_ms: float
    end_ms: float
    count: int = 1


def read_timeline(own: dict, where: str) -> list[Action]:
    """The actions of a repetition or a simulation; [] where it has no timeline."""
    actions = []
    for index, entry in enumerate(member(own, "timeline", list, where, optional=True) or []):
        place = f"{where}.timeline[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: expected an object, found {kind_of(entry)}")
        start, end = (number(entry, key, place) for key in ("start_ms", "end_ms"))
        if start is None or end is None or end < start:
            raise InputError(f"{place}: expected start_ms and end_ms with start_ms <= end_ms")
        actions.append(
            Action(
                device=device_name(entry, "0"),
                kind=str(entry.get("kind", "other")),
                stage=whole_number(entry, "stage", place),
                micro_batch=whole_number(entry, "micro_batch", place),
                start_ms=start,
                end_ms=end,
            )
        )
    return actions


def device_name(entry: dict, otherwise: str) -> str:
    """A device's name; a bare number becomes "device 0"."""
    name = str(entry.get("device", otherwise))
    return f"device {name}" if name.isdigit() else name
