#!/usr/bin/env python3
"""Writes reference_sampler.json: what PyTorch's DistributedSampler gives each replica.

    python make_sampler_reference.py > reference_sampler.json
"""

from __future__ import annotations

import itertools
import json

from torch.utils.data.distributed import DistributedSampler

CASES = itertools.product(
    (1, 7, 12, 20000),  # samples; PyTorch draws long permutations in another way than short ones
    (1, 2, 5),  # replicas
    (True, False),  # shuffle
    (True, False),  # drop_last
    (0, 42),  # seed
    (0, 3),  # epoch
)
KEPT = 12  # the first indices of a long list


def main() -> None:
    """Print all cases."""
    cases = []
    for samples, replicas, shuffle, drop_last, seed, epoch in CASES:
        ranks = []
        for rank in range(replicas):
            sampler = DistributedSampler(
                range(samples), replicas, rank, shuffle=shuffle, seed=seed, drop_last=drop_last
            )
            sampler.set_epoch(epoch)
            indices = list(sampler)
            ranks.append({"size": len(indices), "first": indices[:KEPT]})
        cases.append(
            {
                "samples": samples,
                "replicas": replicas,
                "shuffle": shuffle,
                "drop_last": drop_last,
                "seed": seed,
                "epoch": epoch,
                "ranks": ranks,
            }
        )
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
