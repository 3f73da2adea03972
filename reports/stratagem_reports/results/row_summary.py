"""A row's summary: what the results file says follows from the row's samples.

The program that measured wrote it (`stratagem.summary` of a row's first repetition); nothing is
computed again here. Times are milliseconds, rates are per second, shares are fractions of the step.
"""

from typing import Annotated, Any

import msgspec
from msgspec import field

from .typed_json import Milliseconds, convert

# The summary of a failed row has none of these.
_MEASURED = ("samples", "mean", "median", "deviation", "interval", "outliers", "ratios")


def may_be_one_workload(one: str, two: str) -> bool:
    """Return whether two names can be of one workload, of rows with one name.

    Files of earlier versions lack the last parts, which the row's name has as well.
    """
    return one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/")


class Interval(msgspec.Struct, frozen=True):
    """An interval of the median in milliseconds; `coverage` is its exact probability."""

    low: float
    high: float
    coverage: float


class Ratio(msgspec.Struct, frozen=True):
    """How a row's time stands to another's, with the interval of all launches' pairs.

    `coverage` is the interval's exact probability; each pair of rows has its share of the level.
    """

    value: float
    low: float
    high: float
    coverage: float


class Bubble(msgspec.Struct, frozen=True):
    """The part of a step in which work was not ready; None where nothing recorded it."""

    measured: float | None = None
    ideal: float | None = None


class CommunicationShare(msgspec.Struct, frozen=True):
    """The parts of a step with transfers beside no computation and beside some."""

    exposed: float | None = None
    hidden: float | None = None


class Summary(msgspec.Struct, frozen=True):
    """Of the row `name`; a failed row has workload, verification, marks and error alone.

    A sample is a launch, the median of its timed steps; under the tutorial's protocol it is a whole
    training call, and `predicted_ms` is of one step. Rows of one `workload` may be ranked and
    charted together: `ratios` says how many times as fast this row is as each other one. `figures`
    has every number of the summary that has no name here.
    """

    workload: str
    verification: Annotated[str, msgspec.Meta(pattern="^(passed|failed|not verified)$")]
    proven: bool = False
    marks: list[str] = []
    name: str = ""
    error: str | None = None
    baseline: str | None = None
    samples: Annotated[list[Milliseconds], msgspec.Meta(min_length=1)] | None = field(
        name="samples_ms", default=None
    )
    mean: float | None = field(name="mean_ms", default=None)
    median: float | None = field(name="median_ms", default=None)
    deviation: float | None = field(name="deviation_ms", default=None)
    interval: Interval | None = field(name="interval_ms", default=None)
    spread: float | None = None
    wide: bool = False
    outliers: list[int] | None = None
    bubble: Bubble = Bubble()
    breakdown_ms: dict[str, float] = {}
    communication_share: CommunicationShare | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    peak_memory_bytes: float | None = None
    predicted_ms: float | None = None
    prediction_error: float | None = None
    ratios: dict[str, Ratio] | None = None
    cannot_tell: list[str] = []
    figures: dict[str, float] = {}

    def __post_init__(self) -> None:
        for one in msgspec.structs.fields(self):
            if not self.error and one.name in _MEASURED and getattr(self, one.name) is None:
                raise ValueError(f"no `{one.encode_name}`, which a row that worked has")

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @property
    def communication_exposed(self) -> float | None:
        """The part of the step with transfers that nothing hides; None where there were none."""
        return self.communication_share and self.communication_share.exposed

    @property
    def communication_hidden(self) -> float | None:
        """The part of the step with transfers beside computation; None where there were none."""
        return self.communication_share and self.communication_share.hidden


def read_summary(holder: dict[str, Any], name: str, where: str) -> Summary:
    """The summary of the row `name`; InputError where a member is not what it should be."""
    known = {one.encode_name for one in msgspec.structs.fields(Summary)}
    others = {key: value for key, value in holder.items() if key not in known}
    numbers = {key: value for key, value in others.items() if type(value) in (int, float)}
    return convert(holder | {"name": name, "figures": numbers}, Summary, where)
