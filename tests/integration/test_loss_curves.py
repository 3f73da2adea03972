"""Half formats train as float32 does, and what spoils them is seen."""

from __future__ import annotations

import loss_curves
import pytest


@pytest.fixture
def distance_of(commands, tmp_path):
    """How far a short training with these options is from float32."""

    def run(*arguments):
        done = commands("stratagem", *arguments)
        assert done.returncode == 0, done.stderr

    def measure(name, *options):
        work = loss_curves.WORKS[name]
        folder = tmp_path / "curves"
        folder.mkdir()
        curve = loss_curves.train(run, work, 1, work.short, folder, *options)
        return loss_curves.distance(curve, loss_curves.recorded()[name], 1)

    return measure


@pytest.mark.parametrize(
    ("work", "form"), [("usual", "bfloat16"), ("usual", "float16"), ("small_rate", "bfloat16")]
)
def test_a_half_format_beside_float32_is_within_the_spread_of_seeds(distance_of, work, form):
    found = distance_of(work, "--mixed-precision", form)
    assert found.is_within, found
    assert found.deviations > 0, "nothing was rounded"


def test_bfloat16_alone_loses_small_updates(distance_of):
    found = distance_of("small_rate", "--dtype", "bfloat16")
    assert found.within < 0.5, found
    assert found.validation > loss_curves.MOST_VALIDATION, found
