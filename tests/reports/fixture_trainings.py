"""The log of a small training."""


def training(strategy="single", second=0.1, **config) -> list[dict]:
    """Two epochs of two steps on 8 and 4 samples, with a validation before and after."""
    own = {"strategy": strategy, "model": "toy", "loss": "mse", "global_batch_size": 8} | config
    steps = [
        {"event": "step", "step": step, "samples": samples, "seconds": step * second,
         "loss": 4.0 / step}
        for step, samples in enumerate((8, 12, 20, 24), 1)
    ]  # fmt: skip
    evaluations = [
        {"event": "evaluation", "split": "validation", "step": step, "loss": loss, "samples": 9}
        for step, loss in ((0, 5.0), (2, 3.0), (4, 2.0))
    ]
    start = {"event": "start", "name": f"{strategy}/toy", "config": own, "training_samples": 12}
    return [start, evaluations[0], *steps[:2], evaluations[1], *steps[2:], evaluations[2],
            {"event": "end"}]  # fmt: skip
