"""Runs in order: one series for each row and each kind of hardware, oldest run first."""

from dataclasses import dataclass

from ..analysis.labels import counted
from .points import ANY_HARDWARE, Hardware, Run


class NoMatchError(Exception):
    """The name asked for is in no row; the command prints one line and exits with 3."""


@dataclass(frozen=True)
class Series:
    """The runs of one row on one kind of hardware, oldest first."""

    name: str
    hardware: Hardware
    runs: list[Run]

    @property
    def machine(self) -> str:
        """The hardware for people: the processor, the GPU, and the digest."""
        fields = self.hardware.fields
        parts = [str(fields.get(key) or "") for key in ("cpu_model", "gpu_models")]
        return ", ".join([part for part in parts if part] + [self.hardware.digest])


def series_of(
    runs: list[Run], name_part: str | None = None, across_hardware: bool = False
) -> list[Series]:
    """Series by name and hardware; NoMatchError when no row's name contains the part.

    With `across_hardware` by name alone, for a metric that hardware does not change.
    """
    by_key: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.time):
        if name_part is None or name_part in run.name:
            digest = ANY_HARDWARE if across_hardware else run.hardware.digest
            by_key.setdefault((run.name, digest), []).append(run)
    if not by_key:
        names = sorted({run.name for run in runs})
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise NoMatchError(
            f"no row's name contains {name_part!r}; there are {', '.join(names[:3])}{more}"
        )
    return [
        Series(name, Hardware(digest) if across_hardware else _hardware(own), own)
        for (name, digest), own in sorted(by_key.items())
    ]


def _hardware(runs: list[Run]) -> Hardware:
    """The runs' hardware, with the fields where one of them has more than the digest."""
    return next((run.hardware for run in runs if run.hardware.fields), runs[0].hardware)


def kept_apart(series: list[Series]) -> list[str]:
    """A line for each row that was measured on more than one kind of hardware."""
    by_name: dict[str, list[Series]] = {}
    for item in series:
        by_name.setdefault(item.name, []).append(item)
    notes = []
    for name, own in by_name.items():
        if len(own) > 1:
            parts = "; ".join(f"{item.machine}: {counted(len(item.runs), 'run')}" for item in own)
            notes.append(f"{name}: {len(own)} kinds of hardware, never joined: {parts}")
    return notes
