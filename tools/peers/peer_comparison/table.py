"""Renders the measurements as text tables."""

import statistics
from collections.abc import Sequence

from peer_comparison.ratios import CONFIDENCE, Answer, Ratio, answers, confidence_of_each
from peer_comparison.rounds import Result


def _spread(values: Sequence[float]) -> str:
    """Return (p90 - p10) / median of the values as a percentage; "-" for fewer than two."""
    if len(values) < 2:
        return "-"
    deciles = statistics.quantiles(values, n=10, method="inclusive")
    return f"{(deciles[-1] - deciles[0]) / statistics.median(values):.1%}"


def _milliseconds(values: Sequence[float]) -> str:
    """Return the median with one decimal place, or below 100 ms with three significant digits."""
    median = statistics.median(values)
    return f"{median:.1f}" if median >= 100 else f"{median:.3g}"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines, with the first column aligned left and the others right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def contender_table(names: Sequence[str], result: Result) -> str:
    """Return the table of the contenders' median step times in ms and spreads over launches.

    The last column is the peak resident memory in MiB of a contender's largest process, the median
    over launches. A line for each failed contender has the reason.
    """
    times, peaks = result.step_times(), result.peaks()
    rows = [("contender", "median ms", "spread", "launches", "peak MiB")]
    for name in names:
        if name in times:
            values = list(times[name].values())
            resident = peaks.get(name)
            peak = f"{statistics.median(resident) / 2**20:.0f}" if resident else "-"
            rows.append((name, _milliseconds(values), _spread(values), str(len(values)), peak))
    lines = _columns(rows) if len(rows) > 1 else ["nothing was measured in a whole round"]
    return "\n".join(lines + [f"failed: {name}: {why}" for name, why in result.failures.items()])


def _ratio_row(found: Answer) -> tuple[str, ...]:
    interval = f"[{found.interval.low:.3f}, {found.interval.high:.3f}]"
    ratio = found.ratio
    aim = "-" if ratio.aim is None else f"{'<= ' if ratio.at_most else ''}{ratio.aim:.2f}"
    verdict = found.verdict.value if found.verdict else "-"
    rounds = str(len(found.per_round))
    return found.ratio.name, f"{found.median:.3f}", interval, rounds, aim, verdict


def _choices(answers: Sequence[Answer]) -> list[str]:
    """Return a line with the best candidates for each ratio that had several on a side."""
    lines = []
    for found in answers:
        sides = ((found.ratio.slower, found.slower), (found.ratio.faster, found.faster))
        chosen = [name for candidates, name in sides if len(candidates) > 1]
        if chosen:
            lines.append(f"{found.ratio.name.strip()}: best is {', '.join(chosen)}")
    return lines


def _how_judged(found: Sequence[Answer]) -> list[str]:
    """Return a line about the confidence of the verdicts, if there are any."""
    verdicts = sum(each.verdict is not None for each in found)
    if verdicts == 0:
        return []
    return [
        f"Verdicts hold together with 95%: each of the {verdicts} is by an interval that covers "
        f"{confidence_of_each(verdicts):.1%}."
    ]


def ratio_table(ratios: Sequence[Ratio], result: Result) -> str:
    """Return the table of the ratios that were measured, with an explanation."""
    found = _answers(ratios, result)
    if not found:
        return "no ratio: no two contenders of one were measured in a round that judges it"
    rows = [("ratio of step times", "median", "interval", "rounds", "aim", "verdict")]
    lines = _columns(rows + [_ratio_row(each) for each in found])
    coverage = min(each.interval.coverage for each in found)
    lines += [
        "",
        f"Interval of the median ratio over the rounds, by the sign test: covers {coverage:.1%}"
        + (" or more." if coverage >= CONFIDENCE else " or more; 95% takes six rounds."),
        *_how_judged(found),
        f"Best is the lowest median over the first {result.selection_rounds} rounds, chosen on each"
        " side alike and judged by the later ones.",
        *_choices(found),
    ]
    return "\n".join(lines)


def _answers(ratios: Sequence[Ratio], result: Result) -> list[Answer]:
    """Return the answers to the ratios that were measured."""
    return answers(ratios, result.step_times(), result.selection_rounds, result.wrong)


def answers_as_json(ratios: Sequence[Ratio], result: Result) -> list[dict]:
    """Return the answers as JSON values, with the ratio of each round that judged."""
    return [
        {
            "name": found.ratio.name.strip(),
            "slower": found.slower,
            "faster": found.faster,
            "per_round": found.per_round,
            "median": found.median,
            "interval": [found.interval.low, found.interval.high],
            "coverage": found.interval.coverage,
            "aim": found.ratio.aim,
            "at_most": found.ratio.at_most,
            "verdict": found.verdict.value if found.verdict else None,
        }
        for found in _answers(ratios, result)
    ]
