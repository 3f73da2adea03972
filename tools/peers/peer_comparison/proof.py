"""The proof that a peer's launch took the steps of the scenario's work.

`stratagem export` writes the initial state and the batches once, and the peers begin with them.
After each launch `stratagem prove` compares the peer's steps with the steps of one device in
float64, as Stratagem does for its own launches.
"""

from collections.abc import Sequence
from pathlib import Path

from stratagem_reports.comparison.launch import LaunchError, Output, launch

from peer_comparison.contender import AS_INSTALLED, Contender, WrongSteps

MISMATCH = 1
# The time limit of a command. A reference takes minutes, once for each way to cut the batch.
LONGEST_S = 3600.0


# The most steps of a launch with a usual warm-up. `stratagem prove` computes further steps itself.
USUAL_STEPS = 8


def prepare(stratagem: Path, contenders: Sequence[Contender], workload: Path) -> None:
    """Write the work to the file `workload`, and compute the reference steps of the launches.

    Raises LaunchError if a command fails.
    """
    available = [each for each in contenders if each.row is not None and not each.unavailable]
    for row in dict.fromkeys(each.row for each in available):
        command = (str(stratagem), "export", str(workload), *row)
        launch((*command, "--reference-steps", str(USUAL_STEPS)), AS_INSTALLED, LONGEST_S)


class Prover:
    """Calls `stratagem prove` for a contender's launch, with the evidence in a file in `folder`."""

    def __init__(self, stratagem: Path, folder: Path) -> None:
        self.stratagem_ = stratagem
        self.evidence_ = folder / "evidence.json"

    def __call__(self, contender: Contender, output: Output) -> str:
        """Return the proof as text, or an empty string for a contender without a row.

        Raises WrongSteps if the launch did not take the steps of the contender's row, and
        LaunchError if `stratagem prove` cannot compare them.
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
