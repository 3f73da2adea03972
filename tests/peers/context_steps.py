"""Runs command lines of train.py as several_ways.py does, and prints the same list of answers, but
in float64 and with plain SGD: AdamW would hide a gradient that is a multiple of the right one.
"""

from several_ways import main, run_all


def run_exactly(lines: list[str], rank: int) -> list[dict]:
    """The answers of a rank."""
    import torch
    from torch_peers.gpt import Gpt

    torch.set_default_dtype(torch.float64)
    Gpt.OPTIMIZER, Gpt.OPTIMIZER_OPTIONS = torch.optim.SGD, {"lr": 0.5}
    return run_all(lines, rank)


if __name__ == "__main__":
    main(run_exactly)
