"""Writes the recorded figures into the pages.

Figures stand between two Markdown comments:

    <!-- figures: main_job table split_size_tradeoff -->
    render() replaces this text
    <!-- end -->

The words after the scenario's name are `table`, `contenders` and `ratios` (for peers), and charts
of `stratagem report`. The picture of a chart is SCENARIO_CHART.png in docs/images.
"""

import hashlib
import json
import os
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from peer_comparison.ratios import confidence_of_each
from peer_comparison.rounds import Result
from published.scenarios import RECORDED, ROOT, SCENARIOS
from stratagem_reports.analysis.labels import markdown_text
from stratagem_reports.analysis.selection import select
from stratagem_reports.charts.bandwidth import holds_collectives
from stratagem_reports.charts.chart_limits import without_shared
from stratagem_reports.charts.registry import ChartSet, draw_charts
from stratagem_reports.charts.render import pictures
from stratagem_reports.report.measurement import how_it_was_measured
from stratagem_reports.report.table import COLUMNS, build_table
from stratagem_reports.results.load import Results, load_results

PAGES = tuple(
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "<!-- figures: " in page.read_text()
)
IMAGES = ROOT / "docs" / "images"
# Maps each picture to the hash of the recorded file that it was drawn from.
DRAWN_FROM = RECORDED / "pictures.json"
BLOCK = re.compile(r"(<!-- figures: (\w+) ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MOST_WORDS = 28  # in the alternative text of a picture
LEFT_OUT = ("Samples/s", "MFU", "Verification")  # columns that only the results file has


@dataclass(frozen=True)
class Block:
    """A block of figures on a page: the scenario and the parts that it shows."""

    scenario: str
    shown: tuple[str, ...]


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of figures of a page."""
    return [Block(name, tuple(shown.split())) for _, name, shown, _ in BLOCK.findall(text)]


def shortened(description: str) -> str:
    """Return the description, or the whole values in its first MOST_WORDS words.

    The recorded file has all values.
    """
    words = description.split()
    if len(words) <= MOST_WORDS:
        return description
    kept = " ".join(words[:MOST_WORDS])
    return f"{kept[: kept.rfind(';') + 1] or kept} and further rows in the recorded file."


def markdown_table(rows: list[list[str]]) -> str:
    """Return the rows as a Markdown table; the first row is the heading."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class Recorded:
    """The recorded file of a scenario, and the parts of it that pages show."""

    def __init__(self, name: str) -> None:
        self.scenario = SCENARIOS[name]
        self.text = self.scenario.file.read_text()
        self.content = json.loads(self.text)
        self.is_of_peers = "ratios" in self.content

    @property
    def digest(self) -> str:
        """Return the hash of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def results(self) -> Results:
        """Return the file as `stratagem report` reads it."""
        return load_results(self.scenario.file)

    def charts(self) -> ChartSet:
        """Return the charts that `stratagem report` draws of the file."""
        results = self.results()
        if holds_collectives(results):
            return draw_charts("collectives", results)
        return draw_charts("strategies", results, select(results))

    def shown(self, what: str, page: Path) -> str:
        """Return a part of a block as Markdown; raise KeyError for a chart that cannot be drawn."""
        if what == "table":
            return self._table()
        if what == "contenders":
            return self._contenders()
        if what == "ratios":
            return self._ratios()
        chart = self.charts().charts[what]
        path = os.path.relpath(IMAGES / picture(self.scenario.name, what), page.parent)
        return f"![{markdown_text(shortened(chart.description))}]({path})"

    def _table(self) -> str:
        """Return the table of a results file's rows.

        It leaves out empty columns. Parts that all names share are in a line below it.
        """
        results = self.results()
        lines = [line.cells for line in build_table(results, select(results))]
        columns = [
            index
            for index, column in enumerate(COLUMNS)
            if column.name not in LEFT_OUT and any(len(line) > index and line[index].text for line in lines)
        ]
        headings = [COLUMNS[index].name for index in columns]
        rows = [[markdown_text(_text(line, index)) for index in columns] for line in lines]
        names, shared = without_shared([row[0] for row in rows])
        rows = [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]
        return markdown_table([headings, *rows]) + (f"\n\n{shared.strip()}" if shared else "")

    def _contenders(self) -> str:
        """Return the median step of each contender of a comparison with peers, the fastest first."""
        times = Result.from_json(self.content).step_times()
        medians = {name: statistics.median(values.values()) for name, values in times.items()}
        rows = [
            [f"`{name}`", f"{medians[name]:.4g} ms", str(len(times[name]))]
            for name in sorted(medians, key=medians.get)
        ]
        return markdown_table([["contender", "step, median", "launches"], *rows])

    def _ratios(self) -> str:
        """Return the ratios of a comparison with peers."""
        rows = [["ratio of step times", "median", "interval", "rounds", "aim", "verdict"]]
        for each in self.content["ratios"]:
            low, high = each["interval"]
            sign = "at most " if each["at_most"] else ""
            rows.append(
                [
                    f"{each['name']}: `{each['slower']}` over `{each['faster']}`",
                    f"{each['median']:.3f}",
                    f"{low:.3f} to {high:.3f} ({each['coverage']:.1%})",
                    str(len(each["per_round"])),
                    "" if each["aim"] is None else f"{sign}{each['aim']:.2f}",
                    each["verdict"] or "",
                ]
            )
        verdicts = sum(each["verdict"] is not None for each in self.content["ratios"])
        judged = (
            f"The {verdicts} verdicts hold together with 95%: each is by a wider interval, which "
            f"covers {confidence_of_each(verdicts):.1%}."
        )
        return markdown_table(rows) + (f"\n\n{judged}" if verdicts else "")

    def source(self, page: Path) -> str:
        """Return the source of the figures: file, commit, date, machine, noise and command."""
        path = os.path.relpath(self.scenario.file, page.parent)
        machine, commit, date, noise = self._peers_facts() if self.is_of_peers else self._facts()
        return (
            f"<sub>[{self.scenario.file.name}]({path}), commit {commit}, {date}, {machine}. {noise}"
            f" `{self.scenario.command}`</sub>"
        )

    def _facts(self) -> tuple[str, str, str, str]:
        context = self.content["context"]
        own = context["stratagem"]
        hardware = own["fingerprint"]["hardware"]
        machine = f"{hardware['cpu_model']}, {context['num_cpus']} CPUs"
        results = self.results()
        words = () if holds_collectives(results) else how_it_was_measured(results)
        noise = [word for word in words if "disturbed" in word or "scatter" in word]
        return machine, own["git_commit"], context["date"][:10], " ".join(noise)

    def _peers_facts(self) -> tuple[str, str, str, str]:
        own = self.content["machine"]
        machine = f"{own['processor']}, {own['cpus']} CPUs, PyTorch {own['torch']}"
        return machine, self.content["git_commit"], self.content["date"][:10], ""


def _text(line: list, index: int) -> str:
    if index >= len(line):
        return ""
    cell = line[index]
    detail = cell.detail if index else ""  # the recorded file has the row's full name
    return f"{cell.text} ({detail})" if detail else cell.text


def picture(scenario: str, chart: str) -> str:
    """Return the name of a chart's file."""
    return f"{scenario}_{chart}.png"


def rendered(page: Path) -> str:
    """Return the page with the recorded figures; a block without a recorded file is unchanged."""

    def made(match: re.Match[str]) -> str:
        begin, name, shown, end = match.groups()
        if not SCENARIOS[name].file.exists():
            return match.group()
        recorded = Recorded(name)
        parts = [recorded.shown(what, page) for what in shown.split()]
        return "\n".join([begin.rstrip(), "", "\n\n".join([*parts, recorded.source(page)]), "", end])

    return BLOCK.sub(made, page.read_text())


def pictures_of(pages: tuple[Path, ...] = PAGES) -> dict[str, tuple[str, str]]:
    """Return the scenario and the chart of each picture on the pages, by file name."""
    found = {}
    for page in pages:
        for block in blocks_of(page.read_text()):
            if not SCENARIOS[block.scenario].file.exists():
                continue
            for what in block.shown:
                if what not in ("table", "contenders", "ratios"):
                    found[picture(block.scenario, what)] = (block.scenario, what)
    return found


def render() -> list[Path]:
    """Write the pages and their pictures again, and return the changed and deleted files."""
    for folder in (DRAWN_FROM.parent, IMAGES):
        folder.mkdir(parents=True, exist_ok=True)
    changed = []
    for page in PAGES:
        text = rendered(page)
        if text != page.read_text():
            page.write_text(text)
            changed.append(page)
    drawn = json.loads(DRAWN_FROM.read_text()) if DRAWN_FROM.exists() else {}
    wanted = {}
    for name, (scenario, chart) in sorted(pictures_of().items()):
        recorded = Recorded(scenario)
        wanted[name] = recorded.digest
        if drawn.get(name) != recorded.digest or not (IMAGES / name).exists():
            (png,) = pictures(recorded.charts().charts[chart], ("png",)).values()
            (IMAGES / name).write_bytes(png)
            changed.append(IMAGES / name)
    for name in drawn.keys() - wanted.keys():
        (IMAGES / name).unlink(missing_ok=True)
        changed.append(IMAGES / name)
    DRAWN_FROM.write_text(json.dumps(wanted, indent=1) + "\n")
    return changed
