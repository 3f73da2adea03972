"""The proof that a peer's launch took the steps of the scenario's work.

Stratagem writes the initial state and the batches once (`stratagem export`), the peers begin with
them, and after each launch Stratagem compares what it computed with one device in float64
(`stratagem prove`), as it does with its own launches.
"""

from collections.abc import Sequence
from pathlib import Path

from stratagem_reports.comparison.launch import LaunchError, Output, launch

from peer_comparison.contender import AS_INSTALLED, Contender, WrongSteps

MISMATCH = 1
# A reference is computed once for each way to cut the batch, and takes minutes.
LONGEST_S = 3600.0


# A launch that warms up as usual takes no more steps; `stratagem prove` computes those of a longer one.
USUAL_STEPS = 8


def prepare(stratagem: Path, contenders: Sequence[Contender], workload: Path) -> None:
    """Write the work to the file `workload`, and compute the steps that launches are compared with.

    Raises LaunchError when that cannot be.
    """
    available = [each for each in contenders if each.row is not None and not each.unavailable]
    for row in dict.fromkeys(each.row for each in available):
        command = (str(stratagem), "export", str(workload), *row)
        launch((*command, "--reference-steps", str(USUAL_STEPS)), AS_INSTALLED, LONGEST_S)


class Prover:
    """Calls `stratagem prove` for a contender's launch; keeps the evidence in a folder."""

    def __init__(self, stratagem: Path, folder: Path) -> None:
        self.stratagem_ = stratagem
        self.evidence_ = folder / "evidence.json"

    def __call__(self, contender: Contender, output: Output) -> str:
        """Return the proof in words; empty for a contender that needs none.

        Raises WrongSteps for a launch that did not take the steps of the contender's row, and LaunchError
        where nobody can tell.
        """
        if contender.row is None:
            return ""
        self.evidence_.write_text(output.out_file)
        command = (str(self.stratagem_), "prove", str(self.evidence_), *contender.row)
        try:
            return launch(command, AS_INSTALLED, LONGEST_S).stdout.strip()
        except LaunchError as error:
            mismatch = f"exit code {MISMATCH}: {self.evidence_}: "
            if not str(error).startswith(mismatch):
                raise LaunchError(f"cannot be proven: {error}") from error
            why = str(error).removeprefix(mismatch)
            raise WrongSteps(f"did not take the steps of the work: {why}") from error
