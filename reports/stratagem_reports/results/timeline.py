"""What each device did in one step: the `timeline` of a repetition or of a simulation."""

import msgspec
from msgspec.structs import force_setattr


class Action(msgspec.Struct, frozen=True):
    """One box of a timeline: what a device did from `start_ms` to `end_ms` of the step.

    `stage` and `micro_batch` are None where the action belongs to none. `count` is above 1 where a
    crowded chart shows so many actions of a kind as one box.
    """

    device: int | str
    kind: str
    stage: int | None
    micro_batch: int | None
    start_ms: float
    end_ms: float
    count: int = 1

    def __post_init__(self) -> None:
        if self.end_ms < self.start_ms:
            raise ValueError("expected start_ms <= end_ms")
        force_setattr(self, "device", device_name(self.device))
        for name in ("stage", "micro_batch"):
            if (getattr(self, name) or 0) < 0:
                force_setattr(self, name, None)


def device_name(device: int | str) -> str:
    """A device's name; that of number 0 is "device 0"."""
    return f"device {device}" if str(device).isdigit() else str(device)
