"""stratagem train on the user's own data: folders of images, files of tokens, MNIST."""

from __future__ import annotations

import json

import numpy
import pytest
from PIL import Image

SHORT = ["--no-verify", "--max-steps", 2, "--learning-rate", 0.001]
CLASSES = ["--loss", "cross_entropy"]


def work(arguments) -> list:
    """A language model has its loss; the others are given one."""
    return [*SHORT, *([] if "gpt-tiny" in arguments else CLASSES), *arguments]


def train(commands, log, *arguments) -> list[dict]:
    done = commands.stratagem("train", "--log", log, *work(arguments))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def refusal(commands, *arguments) -> str:
    done = commands.stratagem("train", *work(arguments))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


@pytest.fixture
def pictures(tmp_path):
    """train/ and val/ of two classes, in both formats and several sizes."""
    for part, count in (("train", 4), ("val", 2)):
        for name, colour in (("blue", (20, 30, 200)), ("red", (200, 40, 30))):
            folder = tmp_path / "pictures" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                image = Image.new("RGB", (40 + 7 * number, 36), colour)
                image.save(folder / f"{number}.{'png' if number % 2 else 'jpg'}")
    return tmp_path / "pictures"


@pytest.fixture
def digits(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    random = numpy.random.default_rng(0)
    for part, count in (("train", 8), ("t10k", 4)):
        sizes = numpy.array([0x803, count, 28, 28], ">u4").tobytes()
        pixels = random.integers(0, 256, count * 784, numpy.uint8).tobytes()
        (folder / f"{part}-images-idx3-ubyte").write_bytes(sizes + pixels)
        labels = numpy.arange(count, dtype=numpy.uint8).tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            numpy.array([0x801, count], ">u4").tobytes() + labels)
    return folder


def test_a_folder_of_images(commands, tmp_path, pictures):
    lines = train(
        commands, tmp_path / "log", "--model", "resnet18", "--data", f"images:{pictures}",
        "--image-size", 32, "--global-batch-size", 4, "--validation", "own", "--augment",
        "--loader-threads", 2,
    )  # fmt: skip
    start = lines[0]
    assert (start["training_samples"], start["config"]["image_size"]) == (8, 32)
    assert start["config"]["outputs"] == 2
    assert [line["samples"] for line in lines if line["event"] == "evaluation"] == [4, 4]


def test_what_is_no_folder_of_images_is_one_line(commands, pictures):
    images = ["--model", "resnet18", "--data", f"images:{pictures}"]
    (pictures / "train" / "red" / "notes.txt").write_text("?", encoding="utf-8")
    assert "/train/red/notes.txt: expected images in" in refusal(commands, *images)
    assert "--token-dtype: needs --data tokens" in refusal(
        commands, "--model", "toy", "--token-dtype", "uint32")
    assert "trains on vectors; choices: random" in refusal(
        commands, "--model", "toy", "--data", f"images:{pictures}")


def test_a_damaged_image_ends_the_training_with_its_name(commands, pictures):
    (pictures / "train" / "red" / "1.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    done = commands.stratagem(
        "train", *SHORT, "--model", "resnet18", "--data", f"images:{pictures}", "--image-size", 32,
        "--global-batch-size", 8,
    )  # fmt: skip
    assert done.returncode == 2
    assert "/train/red/1.png: is a damaged PNG file" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("asked", "side"), [([], 32), (["--image-size", 40], 40)])
def test_mnist_trains_at_the_size_that_is_asked_for(commands, tmp_path, digits, asked, side):
    lines = train(
        commands, tmp_path / "log", "--model", "resnet18", "--data", f"mnist:{digits}", *asked,
        "--global-batch-size", 4, "--test", "own",
    )  # fmt: skip
    assert lines[0]["config"]["image_size"] == side
    assert [line["step"] for line in lines if line["event"] == "step"] == [1, 2]


def test_a_file_of_tokens(commands, tmp_path):
    tokens = numpy.arange(2000) % 250
    for name, dtype in (("short.bin", "uint16"), ("long.bin", "uint32")):
        tokens.astype(dtype).tofile(tmp_path / name)
    gpt = ["--model", "gpt-tiny", "--sequence-length", 16, "--global-batch-size", 4]
    losses = []
    for name, options in (("short.bin", []), ("long.bin", ["--token-dtype", "uint32"])):
        lines = train(commands, tmp_path / f"{name}.log", *gpt, "--validation", 0.1,
                      "--data", f"tokens:{tmp_path / name}", *options)
        assert lines[0]["training_samples"] == 112
        losses.append([line["loss"] for line in lines if line["event"] == "step"])
    assert losses[0] == losses[1]
    (tokens + 50_000).astype("uint16").tofile(tmp_path / "wide.bin")
    message = refusal(commands, *gpt, "--data", f"tokens:{tmp_path / 'wide.bin'}")
    assert "wide.bin: has token 50249, the model's vocabulary is 0 to 255" in message
