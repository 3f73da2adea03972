"""The state of several ranks as one."""

import importlib.util

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="no torchvision"
)


def of(value):
    return {"squares": value * value, "projected": [value] * 8}


def test_stages_add_up_and_replicas_agree():
    from torch_peers.evidence import joined

    assert joined([{"a": of(1.0), "s.running_mean": of(2.0)}, {"a": of(1.0), "b": of(3.0)}]) == {
        "a": of(1.0), "s.running_mean": of(2.0), "b": of(3.0),
    }  # fmt: skip
    first = {"s.running_mean": of(2.0)}
    assert joined([first, {"s.running_mean": of(5.0)}]) == first
    diverged = {"a": of(float("nan"))}
    assert joined([diverged, {"a": of(float("nan"))}]).keys() == {"a"}
    with pytest.raises(ValueError, match="rank 1 holds other values of a than a rank before it"):
        joined([{"a": of(1.0)}, {"a": of(1.0000001)}])


def test_a_fingerprint_does_not_depend_on_how_a_tensor_lies():
    """Its blocks are of 2^20 elements; a test of every way proves that its signs are Stratagem's."""
    import torch
    from torch_peers.evidence import BLOCK, fingerprint_of

    values = torch.arange(BLOCK + 13, dtype=torch.float32).remainder(7) - 3
    whole = fingerprint_of("name", values)
    assert whole["squares"] == pytest.approx(float(values.double().square().sum()))
    image = values[: 2 * 3 * 5 * 7].reshape(2, 3, 5, 7)
    last = image.contiguous(memory_format=torch.channels_last)
    assert fingerprint_of("name", last) == fingerprint_of("name", image)
    assert fingerprint_of("other", image)["projected"] != fingerprint_of("name", image)["projected"]
    count = fingerprint_of("steps", torch.tensor(3))
    assert count["squares"] == 9 and {abs(each) for each in count["projected"]} == {3.0}
