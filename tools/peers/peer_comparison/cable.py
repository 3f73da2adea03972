"""Runs the two ranks of a contender on two simulated hosts that a cable joins.

The hosts are two network namespaces of one machine. `tools/two_hosts` makes them, starts a
contender's command on both, and passes each process its rank.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from peer_comparison.contender import Contender, Launchable
from peer_comparison.contenders import ROOT, Scenario

TWO_HOSTS = ROOT / "tools" / "two_hosts"
HOSTS = 2


def why_refused(rate: str, program: Path = TWO_HOSTS) -> str | None:
    """Return the reason why this machine cannot have the cable, in one line, or None."""
    command = [str(program), "--rate", rate, "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except OSError as error:
        return f"cannot start {program}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{program} does not end"
    if tried.returncode == 0:
        return None
    lines = [line for line in tried.stderr.splitlines() if line.strip()] or ["no message"]
    own = [line for line in lines if line.startswith("two_hosts:")]
    return (own or lines)[0]


def _on_both_hosts(launchable: Launchable, rate: str) -> Launchable:
    command = (str(TWO_HOSTS), "--rate", rate, *launchable.command)
    return replace(launchable, command=command)


def _joined(contender: Contender, rate: str) -> Contender:
    """Return the contender with all its launches on both hosts."""
    preflight = contender.preflight and _on_both_hosts(contender.preflight, rate)
    return replace(contender, timed=_on_both_hosts(contender.timed, rate), preflight=preflight)


def over_a_cable(scenario: Scenario, rate: str) -> tuple[Scenario, Sequence[str]]:
    """Return the scenario over a cable, and the names of the contenders that are left out.

    `rate` is written as for tc, such as 1gbit. Contenders that do not have two ranks are left out.
    The ratios have their aims for this cable.
    """
    contenders = [each for each in scenario.contenders if each.ranks == HOSTS]
    names = {contender.name for contender in contenders}
    left_out = [each.name for each in scenario.contenders if each.name not in names]
    ratios = [
        replace(
            ratio,
            slower=tuple(name for name in ratio.slower if name in names),
            faster=tuple(name for name in ratio.faster if name in names),
            aim=ratio.cable_aims.get(rate),
        )
        for ratio in scenario.ratios
    ]
    return (
        replace(
            scenario,
            contenders=tuple(_joined(contender, rate) for contender in contenders),
            ratios=tuple(ratio for ratio in ratios if ratio.slower and ratio.faster),
        ),
        left_out,
    )
