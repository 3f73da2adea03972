"""The log of a small training."""


def training(strategy="single", second=0.1, **config) -> list[dict]:
    """Two epochs of two steps on 8 and 4 samples, with a validation before and after."""
    own = {"strategy": strategy, "model": "toy", "loss": "mse", "global_batch_size": 8} | config
    steps = [
        {"event": "step", "epoch": (step - 1) // 2, "step": step, "of": 4, "samples": samples,
         "seconds": step * second, "loss": 4.0 / step, "batch": 8 - 4 * (step % 2 == 0),
         "learning_rate": 0.1, "data_wait_ms": 2.0 * second * step}
        for step, samples in enumerate((8, 12, 20, 24), 1)
    ]  # fmt: skip
    evaluations = [
        {"event": "evaluation", "split": "validation", "epoch": step // 2, "step": step,
         "samples": 9, "loss": loss, "seconds": 0.01}
        for step, loss in ((0, 5.0), (2, 3.0), (4, 2.0))
    ]
    start = {"event": "start", "name": f"{strategy}/toy", "config": own, "training_samples": 12,
             "steps_of_an_epoch": 2, "parameters": 125}  # fmt: skip
    end = {"event": "end", "steps": 4, "seconds": 4 * second, "data_wait_ms": 20.0 * second,
           "stalled_steps": 3, "loader_ms": 1.5, "loader_processor_ms": 1.25}  # fmt: skip
    return [start, evaluations[0], *steps[:2], evaluations[1], *steps[2:], evaluations[2], end]
