"""`stratagem compare`: whether one build or results file is slower than another."""

import argparse
import sys
from pathlib import Path

from ..comparison.launch import LaunchError
from ..results.errors import InputError
from ..results.files import write_together
from .argument_types import acceptance, count, percentage, positive
from .terminal import Progress, has_color

_NOTHING_MATCHED, _LAUNCH_FAILED, _INTERRUPTED = 3, 4, 130
_CONFIDENCE, _INTERLEAVED_CONFIDENCE, _THRESHOLD = 0.95, 0.97, 0.01
_OF_TIMES = ("threshold", "confidence", "minutes", "whole_launches", "seed", "record")
_OF_LAUNCHES = ("minutes", "rounds", "control", "seed", "record", "whole_launches")


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser."""
    parser = commands.add_parser(
        "compare",
        help="tests whether a build or a results file is slower than another",
        usage="stratagem compare [OPTION...] BASE.json HEAD.json\n"
        "       stratagem compare --exact-only [OPTION...] BASE.json HEAD.json\n"
        "       stratagem compare --interleave [OPTION...] BASE_BUILD HEAD_BUILD -- RUN_OPTION...\n"
        "       stratagem compare --interleave --control [OPTION...] BUILD -- RUN_OPTION...",
        description="Compares rows of the same name: step times by launches, deterministic metrics "
        "(calls, bytes, FLOPs, live micro-batches, operators) by equality. Exit codes: 0 no "
        "regression; 1 a regression; 2 bad input; 3 no row (with --exact-only: no metric) in "
        "common; 4 a launch failed; 5 a row is ambiguous (cannot tell, or too few launches), with "
        "--fail-on-ambiguous.",
    )
    parser.add_argument(
        "base", metavar="BASE", help="a results file, several joined by commas, or a build"
    )
    parser.add_argument(
        "head", metavar="HEAD", nargs="?", help="results files or build to compare with BASE"
    )
    parser.add_argument(
        "--exact-only", action="store_true",
        help="compare deterministic metrics and peak memory (tolerance 1%%), not times; one launch "
        "per side is enough. If the hardware differs, metrics that depend on hardware are left out "
        "(--across-machines includes them). With --interleave each build is launched once",
    )  # fmt: skip
    interleaved = parser.add_argument_group("interleaved comparison of two builds")
    interleaved.add_argument(
        "--interleave", action="store_true",
        help="BASE and HEAD are builds: folders with bin/stratagem, or executables",
    )  # fmt: skip
    interleaved.add_argument(
        "--minutes",
        type=positive,
        metavar="MINUTES",
        help="time budget of the comparison (default 30)",
    )
    interleaved.add_argument(
        "--rounds", type=count, metavar="N",
        help="maximum number of rounds; with --exact-only: number of rounds (default 1)",
    )  # fmt: skip
    interleaved.add_argument(
        "--control", action="store_true",
        help="compare BASE with itself to show the noise floor",
    )  # fmt: skip
    interleaved.add_argument(
        "--whole-launches", action="store_true",
        help="launch one build after the other; by default both run at once and alternate steps",
    )  # fmt: skip
    interleaved.add_argument(
        "--seed", type=count, metavar="N", help="random seed of the order within rounds (default 1)"
    )
    interleaved.add_argument(
        "--record", type=Path, metavar="FILE", help="append each round to FILE as a line of JSON"
    )
    parser.add_argument(
        "--threshold", type=percentage, metavar="X%",
        help="smallest relevant change of the step time (default 1%%)",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", type=percentage, metavar="X%",
        help="confidence of all verdicts together (default 95%%; interleaved 97%%)",
    )  # fmt: skip
    parser.add_argument(
        "--across-machines", action="store_true",
        help="compare despite different hardware and mark the result; with --exact-only also "
        "compare the metrics that depend on hardware",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on-ambiguous", action="store_true", help="exit with 5 if a row is ambiguous"
    )
    parser.add_argument(
        "--accept", type=acceptance, metavar="METRIC=ROW", action="append", default=[],
        help="accept an intended increase of a deterministic metric; * and ? are wildcards; may be "
        "repeated",
    )  # fmt: skip
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write the comparison as an HTML page"
    )
    for name, what in (("markdown", "Markdown"), ("json", "JSON"), ("junit", "JUnit XML")):
        meaning = f"write the comparison as {what}; - is the standard output"
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=meaning)
    parser.set_defaults(run=run, run_options=[])


def run(options: argparse.Namespace) -> int:
    """Compares, shows and writes; returns the exit code."""
    if options.exact_only:
        _refuse(options, _OF_TIMES, "not with --exact-only, which compares no times")
    default = _INTERLEAVED_CONFIDENCE if options.interleave else _CONFIDENCE
    options.confidence = default if options.confidence is None else options.confidence
    options.threshold = _THRESHOLD if options.threshold is None else options.threshold
    if not 0.5 <= options.confidence < 1:
        raise InputError(
            f"--confidence {options.confidence:.4g}: expected 50% or more, and below 100%"
        )
    return _interleaved(options) if options.interleave else _separate(options)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    """InputError where one of the options is given."""
    for name in names:
        if getattr(options, name) is not None and getattr(options, name) is not False:
            raise InputError(f"--{name.replace('_', '-')}: {why}")


def _separate(options: argparse.Namespace) -> int:
    why = "only with --interleave"
    _refuse(options, _OF_LAUNCHES, why)
    if options.run_options:
        raise InputError(f"options after --: {why}")
    if options.head is None:
        raise InputError("HEAD is missing; expected BASE.json HEAD.json")
    from ..comparison.deterministic_only import compare_metrics_only
    from ..comparison.result_set import read_result_set
    from ..comparison.verdicts import compare_result_sets

    base = read_result_set("base", _paths("BASE", options.base))
    head = read_result_set("head", _paths("HEAD", options.head))
    if options.exact_only:
        return _finish(compare_metrics_only(base, head, options.across_machines), options)
    comparison = compare_result_sets(
        base, head, options.threshold, options.confidence, options.across_machines
    )
    return _finish(comparison, options)


def _interleaved(options: argparse.Namespace) -> int:
    if options.across_machines:
        raise InputError("--across-machines: not with --interleave, which uses this one")
    if options.control == (options.head is not None):
        given = (
            "--control: expected one build"
            if options.control
            else "--interleave: expected BASE_BUILD HEAD_BUILD"
        )
        raise InputError(f"{given}; the options of `stratagem run` come after --")
    from ..comparison.builds import check_run_options, find_build

    check_run_options(options.run_options)
    base = find_build("base", Path(options.base))
    head = find_build("head", Path(options.base if options.control else options.head))
    progress = Progress()
    try:
        comparison = _launched(base, head, options, progress)
    except LaunchError as error:
        print(f"stratagem compare: a launch gave no results: {error}", file=sys.stderr)
        return _LAUNCH_FAILED
    finally:
        progress.finish()
    code = _finish(comparison, options)
    if comparison.interleaved["interrupted"]:
        return _INTERRUPTED
    failed = any(row.timing.verdict.value == "failed" for row in comparison.rows)
    return _LAUNCH_FAILED if failed else code


def _launched(base, head, options: argparse.Namespace, progress: Progress):
    """The comparison of two builds, launched as often as it takes; LaunchError without results."""
    from ..comparison.deterministic_only import compare_builds_by_metrics
    from ..comparison.interleave import Settings, interleave

    if options.exact_only:
        rounds = options.rounds or 1
        return compare_builds_by_metrics(
            base, head, options.run_options, rounds, options.control, progress
        )
    settings = Settings(
        run_options=options.run_options,
        minutes=options.minutes or 30.0,
        threshold=options.threshold,
        confidence=options.confidence,
        rounds=options.rounds,
        control=options.control,
        seed=options.seed or 1,
        record=options.record,
        turns=not options.whole_launches,
    )
    return interleave(base, head, settings, progress)


def _finish(comparison, options: argparse.Namespace) -> int:
    from ..comparison.verdicts import accept

    if not comparison.rows:
        names = [next(iter(result_set.rows)) for result_set in (comparison.base, comparison.head)]
        return _nothing(
            f": no row has the same name on both sides: {names[0]} and {names[1]}, for example"
        )
    comparison = accept(comparison, options.accept)
    told = any(row.regression or row.compared for row in comparison.rows)
    if comparison.deterministic_only and not told:
        return _nothing(
            " --exact-only: no row has a deterministic metric to compare on both sides; expected "
            "results of `stratagem run`"
        )
    show(comparison, options)
    return comparison.exit_code(options.fail_on_ambiguous)


def _nothing(message: str) -> int:
    print(f"stratagem compare{message}", file=sys.stderr)
    return _NOTHING_MATCHED


def show(comparison, options: argparse.Namespace) -> None:
    """Prints the table, or what was asked for with "-" in its place, and writes the files."""
    from ..comparison.console import render_console
    from ..comparison.document import render_json
    from ..comparison.junit import render_junit
    from ..comparison.markdown import render_markdown

    renderers = {"markdown": render_markdown, "json": render_json, "junit": render_junit}
    wanted = {name: getattr(options, name) for name in renderers if getattr(options, name)}
    alone = [name for name, path in wanted.items() if str(path) == "-"]
    if len(alone) > 1:
        raise InputError(f"--{alone[0]} - and --{alone[1]} -: only one can be the standard output")
    shared = _shared([path for path in (*wanted.values(), options.html) if path])
    if shared:
        raise InputError(f"two outputs share {shared}; give each its own file")
    files = {
        path: renderers[name](comparison).encode()
        for name, path in wanted.items()
        if name not in alone
    }
    if options.html:
        from ..comparison.page import render_html

        files[options.html] = render_html(comparison)
    # Printed first: a file that cannot be written must not cost what was measured.
    if alone:
        sys.stdout.write(renderers[alone[0]](comparison))
    else:
        sys.stdout.write(render_console(comparison, has_color(sys.stdout)))
    for path, data in files.items():
        write_together(path.parent, {path.name: data})


def _shared(paths: list[Path]) -> Path | None:
    """The first file that two outputs would write; None where there is none."""
    files = [path.absolute() for path in paths if str(path) != "-"]
    return next((path for at, path in enumerate(files) if path in files[:at]), None)


def _paths(side: str, text: str) -> list[Path]:
    """The files joined by commas; a comma in the name of an existing file belongs to the name."""
    parts = text.split(",")
    paths: list[Path] = []
    while parts:
        joined = {count: ",".join(parts[:count]) for count in range(len(parts), 0, -1)}
        count = next((n for n, name in joined.items() if name and Path(name).exists()), 1)
        paths += [Path(joined[count])] if joined[count] else []
        del parts[:count]
    if not paths:
        raise InputError(f"{side}: expected a results file")
    return paths
