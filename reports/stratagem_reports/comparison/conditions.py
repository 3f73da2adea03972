"""Why the times of a row's two sides cannot be compared, as the files record their conditions."""

from ..analysis.labels import percent
from .result_set import Launches

_SLOWER_CANARY = 0.05  # as far as canaries of one run may be apart, too
_SHARED = ("oversubscribed", "shared")
_WORDS = {
    "disturbed": "every launch of the {side} was disturbed",
    "shared_cores": "another run used the cores of the {side}",
    "test_fault": "the {side} has an injected fault",
    "not_stationary": "steps of the {side} were timed before they were steady",
    "slow_machine": "the machine of the {side} was slower than in a calmer run",
}


def unlike_conditions(base: Launches, head: Launches, one_machine: bool) -> str:
    """Return what prevents a comparison, in one line; "" where nothing does.

    With `one_machine` the canaries of both sides must agree, too. Where they do, a machine that was
    slower than usual was so on both sides, and the times can be compared.
    """
    canaries = None not in (base.canary_ms, head.canary_ms)
    reasons = [
        _WORDS[mark].format(side=side)
        for side, own in (("base", base), ("head", head))
        for mark in sorted(own.unreliable)
        if not (mark == "slow_machine" and canaries)
    ]
    if one_machine and canaries and (reason := _unlike_canaries(base.canary_ms, head.canary_ms)):
        reasons.append(reason)
    for mark in _SHARED:
        sides = [own for own in (base, head) if mark in own.marks]
        if len(sides) == 1:
            reasons.append(f"{mark} in the {'base' if sides[0] is base else 'head'} only")
    if base.steps and head.steps and base.steps != head.steps:
        counts = [" and ".join(map(str, sorted(own.steps))) for own in (base, head)]
        reasons.append(f"--steps {counts[0]} in the base and {counts[1]} in the head")
    return "; ".join(reasons)


def _unlike_canaries(base_ms: float, head_ms: float) -> str:
    ratio = max(base_ms / head_ms, head_ms / base_ms)
    if ratio <= 1 + _SLOWER_CANARY:
        return ""
    slower = "base" if base_ms > head_ms else "head"
    return f"the canary of the {slower} took {percent(ratio - 1, 0)} longer"
