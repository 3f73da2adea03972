"""Records what loss_curves.json holds, and prints how far half formats are from it.

    python tests/integration/record_loss_curves.py STRATAGEM [--compare [WORK/FORM]]

Without --compare float32 is trained with five seeds and written. With it half formats, beside
float32 and in ways that spoil them, are trained for all recorded steps and held against it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from loss_curves import RECORDED, SEEDS, WORKS, Curve, Work, distance, recorded, train

FORMS = {
    "bfloat16": ("--mixed-precision", "bfloat16"),
    "float16": ("--mixed-precision", "float16"),
    "float16, not scaled": ("--mixed-precision", "float16", "--loss-scale", "none"),
    "bfloat16 alone": ("--dtype", "bfloat16"),
}


def whole(run: Callable, work: Work, seed: int, folder: Path) -> Curve:
    """With the validation losses at the ends of a short run and of a whole one."""
    curve = train(run, work, seed, work.steps, folder)
    if work.short < work.steps:
        curve.validation.update(train(run, work, seed, work.short, folder).validation)
    return curve


def compare(run: Callable, folder: Path, only: str) -> None:
    """Prints a line for each work and form, of the first seed."""
    seed = SEEDS[0]
    for name, work in WORKS.items():
        for form, options in FORMS.items():
            if re.search(only, f"{name}/{form}") is None:
                continue
            curve = train(run, work, seed, work.steps, folder, *options)
            found = distance(curve, recorded()[name], seed)
            print(
                f"{name}/{form}: {found.deviations:.2f} deviations at step {found.step}, "
                f"{100 * found.within:.0f}% of steps within, validation "
                f"{100 * found.validation:+.2f}%: {'within' if found.is_within else 'off'}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stratagem", type=Path)
    parser.add_argument(
        "--compare", nargs="?", const="", metavar="WORK/FORM", help="those that match, or all"
    )
    arguments = parser.parse_args()

    def run(*options: object) -> None:
        command = [str(arguments.stratagem), *(str(option) for option in options)]
        subprocess.run(command, check=True, timeout=3600)

    with tempfile.TemporaryDirectory() as folder:
        if arguments.compare is not None:
            return compare(run, Path(folder), arguments.compare)
        curves = {
            name: {seed: whole(run, work, seed, Path(folder)) for seed in SEEDS}
            for name, work in WORKS.items()
        }
    content = {
        name: {
            str(seed): {
                "losses": [round(loss, 4) for loss in curve.losses],
                "validation": {step: round(loss, 5) for step, loss in curve.validation.items()},
            }
            for seed, curve in by_seed.items()
        }
        for name, by_seed in curves.items()
    }
    RECORDED.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    print(RECORDED)


if __name__ == "__main__":
    main()
