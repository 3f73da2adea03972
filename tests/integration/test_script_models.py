"""Models from Python: `--model script:FILE` trains what PyTorch trains, under the strategies."""

from __future__ import annotations

import importlib
import json
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools" / "python"), str(ROOT / "tools" / "peers")]

from export_model import export_model  # noqa: E402
from torch_peers.evidence import fingerprint_of  # noqa: E402

nn = torch.nn
IMAGES = {"sample_shape": [3, 16, 16], "outputs": 10}


class Residual(nn.Module):
    """A basic block of a ResNet."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + x)


def resnet() -> nn.Module:
    """Return a small ResNet; its blocks lie in a Sequential of their own."""
    stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(8, 10))
    return nn.Sequential(stem, nn.BatchNorm2d(8), nn.ReLU(), nn.Sequential(Residual(8), Residual(8)), *head)


class Embedding(nn.Module):
    """Token and position embedding."""

    def __init__(self, vocabulary: int, tokens: int, features: int):
        super().__init__()
        self.token = nn.Embedding(vocabulary, features)
        self.position = nn.Embedding(tokens, features)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return [n, sequence, features]."""
        return self.token(tokens) + self.position(torch.arange(tokens.size(1), device=tokens.device))


class Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, features: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.c_attn, self.c_proj = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.c_fc, self.c_out = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        n, s, d = x.shape
        parts = self.c_attn(self.ln_1(x)).view(n, s, 3, self.heads, d // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(mixed.transpose(1, 2).reshape(n, s, d))
        return x + self.c_out(torch.nn.functional.gelu(self.c_fc(self.ln_2(x))))


def gpt() -> nn.Module:
    """Return a small GPT-2."""
    blocks = [Block(32, 4) for _ in range(3)]
    return nn.Sequential(Embedding(64, 16, 32), *blocks, nn.LayerNorm(32), nn.Linear(32, 64, bias=False))


MODELS = {
    "resnet": (resnet, IMAGES, ["--global-batch-size", "8", "--split-size", "4"]),
    "gpt": (gpt, {"sequence_length": 16, "outputs": 64}, ["--global-batch-size", "8", "--split-size", "2"]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    torch.manual_seed(1)
    for name, (make, sample, _) in MODELS.items():
        export_model(make(), str(folder / f"{name}.pt"), **sample)
    return {name: folder / f"{name}.pt" for name in MODELS}


def test_a_schedule_file_may_have_few_micro_batches(commands, files, tmp_path):
    order = tmp_path / "order.csv"
    order.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    done = commands.stratagem("run", "--strategy", "pipeline", "--schedule", f"csv:{order}",
                              "--model", f"script:{files['resnet']}", *MODELS["resnet"][2],
                              "--steps", "1", "--repetitions", "1", "--no-predict")  # fmt: skip
    assert done.returncode == 0, done.stderr


def torchvision_resnet(classes: int = 10) -> nn.Module:
    """Return torchvision's ResNet-18 as a list of layers: its forward() flattens before fc."""
    net = importlib.import_module("torchvision").models.resnet18(num_classes=classes)
    *before, (name, head) = net.named_children()
    return nn.Sequential(OrderedDict([*before, ("flatten", nn.Flatten(1)), (name, head)]))


@pytest.fixture
def resnet18(tmp_path) -> Path:
    torch.manual_seed(1)
    return written(tmp_path, torchvision_resnet(), sample_shape=[3, 32, 32], outputs=10)


def test_a_training_step_of_torchvisions_resnet18_equals_pythons(commands, resnet18, tmp_path):
    compare_with_python(commands, resnet18, torchvision_resnet(),
                        ["--global-batch-size", "8", "--loss", "cross_entropy"], tmp_path)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_equals_pythons(commands, files, tmp_path, name):
    make, sample, size = MODELS[name]
    loss = [] if "sequence_length" in sample else ["--loss", "cross_entropy"]
    compare_with_python(commands, files[name], make(), [*size[:2], *loss], tmp_path)


def compare_with_python(commands, file: Path, model: nn.Module, size: list[str], tmp_path: Path):
    """Train three steps in float64 in Python; `prove` judges them as our own rows."""
    row = ["--strategy", "single", "--model", f"script:{file}", *size,
           "--dtype", "float64", "--learning-rate", "0.05"]  # fmt: skip
    work = tmp_path / "work.pt"
    done = commands.stratagem("export", work, *row)
    assert done.returncode == 0, done.stderr
    content = torch.load(work, weights_only=True)
    model = model.double()
    model.load_state_dict(content["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for batch in content["batches"][:3]:
        optimizer.zero_grad()
        output = model(batch["inputs"])
        value = nn.functional.cross_entropy(output.flatten(0, -2), batch["targets"].flatten())
        value.backward()
        optimizer.step()
        losses.append(value.item())
    evidence = tmp_path / "evidence.json"
    tensors = [*model.named_parameters(), *model.named_buffers()]
    state = {name: fingerprint_of(name, tensor.detach()) for name, tensor in tensors}
    evidence.write_text(json.dumps({"loss": losses, "skipped": [], "state": state}))
    done = commands.stratagem("prove", evidence, *row)
    assert done.returncode == 0, done.stderr


STRATEGIES = ["single", "model_parallel", "pipeline", "data_parallel", "ddp", "ddp_model_parallel",
              "zero1", "zero2", "zero3"]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_recomputation_keeps_the_update_and_the_statistics(commands, files, name):
    row = ["--model", f"script:{files[name]}", *MODELS[name][2], "--recompute", "full"]
    done = commands.stratagem("verify", "--strategy", "single,pipeline,zero3,data_parallel", *row,
                              "--devices", "2", "--oversubscribe")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODELS)
def test_strategies_compute_the_update_of_one_device(commands, files, name):
    devices = ["--devices", "2", "--oversubscribe"]
    row = ["--model", f"script:{files[name]}", *MODELS[name][2]]
    strategies = ",".join(each for each in STRATEGIES if each != "ddp_model_parallel")
    done = commands.stratagem("verify", "--strategy", strategies, *row, *devices)
    assert done.returncode == 0, done.stdout + done.stderr
    done = commands.stratagem("verify", "--strategy", "ddp_model_parallel", *row,
                              "--devices", "4", "--oversubscribe")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_batch_norm_over_one_position_has_enough_samples(commands, resnet18):
    """The last feature map of 32x32 images is 1x1: over four samples rounding is magnified."""
    done = commands.stratagem("verify", "--strategy", "ddp", "--model", f"script:{resnet18}",
                              "--global-batch-size", "8", "--devices", "2", "--oversubscribe")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "batch 8 -> 16" in done.stdout


def test_relus_inside_a_layer_are_no_difference(commands, tmp_path):
    """Rounding decides about units near zero; those inside a layer of a file cannot be masked."""
    torch.manual_seed(0)
    file = written(tmp_path, torchvision_resnet(), sample_shape=[3, 64, 64], outputs=10)
    done = commands.stratagem("verify", "--strategy", "single", "--model", f"script:{file}",
                              "--global-batch-size", "16", "--loss", "cross_entropy",
                              "--devices", "1")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "layers" not in done.stdout and "a step of" in done.stdout


def test_a_run_names_the_file_and_proves_its_steps(commands, files, tmp_path):
    out = tmp_path / "r.json"
    row = ["--model", f"script:{files['resnet']},mlp", "--global-batch-size", "8"]
    done = commands.stratagem(
        "run", "--strategy", "single,pipeline", *row, "--split-size", "4", "--devices", "2",
        "--oversubscribe", "--repetitions", "2", "--steps", "2", "--no-predict", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "script:resnet.pt" in done.stdout and "mlp" in done.stdout
    launches = [entry for entry in json.loads(out.read_text())["benchmarks"] if entry["run_type"] == "iteration"]
    of_file = [entry for entry in launches if "script:resnet.pt" in entry["run_name"]]
    assert of_file
    for entry in of_file:
        assert entry["stratagem"]["proof"]["passed"]


def flops_of(commands, folder: Path, *row: str) -> list[float]:
    """Return the operations of a step of each row's first launch."""
    out = folder / "flops.json"
    done = commands.stratagem("run", "--strategy", "single", "--global-batch-size", "4", "--no-verify",
                              "--no-predict", "--steps", "1", "--repetitions", "1", "--out", out, *row)  # fmt: skip
    assert done.returncode == 0, done.stderr
    launches = json.loads(out.read_text())["benchmarks"]
    rows = {each["run_name"]: each["stratagem"] for each in launches if each["run_type"] == "iteration"}
    return [row["flops_per_step"] for name, row in rows.items() if "cores:" not in name]


def test_operations_are_those_of_stratagems_own_models(commands, tmp_path):
    resnet = written(tmp_path, torchvision_resnet(1000), sample_shape=[3, 64, 64], outputs=1000)
    own, of_file = flops_of(commands, tmp_path, "--model", f"resnet18,script:{resnet}", "--image-size", "64")
    assert own == of_file
    layers = [Embedding(256, 32, 64), Block(64, 2), Block(64, 2), nn.LayerNorm(64)]
    tiny = nn.Sequential(*layers, nn.Linear(64, 256, bias=False))
    gpt_tiny = written(tmp_path, tiny, sequence_length=32, outputs=256)
    own, of_file = flops_of(commands, tmp_path, "--model", f"gpt-tiny,script:{gpt_tiny}")
    assert own == of_file


def written(folder: Path, model: nn.Module, **facts) -> Path:
    export_model(model, str(folder / "m.pt"), **(facts or {"sample_shape": [4], "outputs": 2}))
    return folder / "m.pt"


class Branching(nn.Module):
    """Its forward() is not its children in order."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [n, 2]."""
        return self.two(self.one(x) + x)


class Noisy(nn.Module):
    """It has no dropout layer, and draws numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the same shape."""
        return x + torch.rand_like(x) if self.training else x


class Childless(nn.Module):
    """A module without children."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [n, 2]."""
        return x @ self.weight


def tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    return model


def frozen() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 2))
    model[0].bias.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("make", "facts", "words"),
    [
        (Branching, {}, ["not its children in order", "Sequential"]),
        (Childless, {}, ["no children"]),
        (tied, {"sample_shape": [4], "outputs": 4}, ["1.weight is shared"]),
        (frozen, {}, ["0.bias is frozen"]),
        (lambda: nn.Sequential(nn.Linear(4, 400), nn.Dropout(0.5)), {"sample_shape": [4], "outputs": 400}, ["p=0"]),
        (lambda: nn.Sequential(Noisy(), nn.Linear(4, 2)), {}, ["random"]),
        (lambda: nn.Sequential(nn.Linear(4, 2)), {"sample_shape": [3, 4, 5], "outputs": 2}, ["[3,4,5]"]),
        (lambda: nn.Sequential(nn.Linear(4, 2)), {"sample_shape": [4], "outputs": 3}, ["returns 2 outputs"]),
        (lambda: nn.Sequential(nn.Linear(4, 2)), {"outputs": 2}, ["sample_shape"]),
        (lambda: nn.Sequential(nn.Linear(5, 2)), {}, ["cannot be called one after the other"]),
    ],
    ids=["branching", "childless", "tied", "frozen", "dropout", "noise", "oblong", "outputs", "no shape", "sizes"],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused_in_one_line(commands, tmp_path, make, facts, words):
    file = written(tmp_path, make(), **facts)
    done = commands.stratagem("verify", "--strategy", "single", "--model", f"script:{file}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    for word in [str(file), *words]:
        assert word in done.stderr


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 no zip", b"\x80\x02}q\x00."])
def test_a_file_that_is_not_torchscript_is_refused(commands, tmp_path, content):
    file = tmp_path / "bad.pt"
    if content is not None:
        file.write_bytes(content)
    done = commands.stratagem("run", "--strategy", "single", "--model", f"script:{file}")
    assert done.returncode in (2, 4) and done.stderr.count("\n") == 1, done.stderr
    assert "bad.pt" in done.stderr


def test_without_metadata_the_remedy_is_named(commands, tmp_path):
    file = tmp_path / "plain.pt"
    torch.jit.script(nn.Sequential(nn.Linear(4, 2))).save(str(file))
    done = commands.stratagem("verify", "--strategy", "single", "--model", f"script:{file}")
    assert done.returncode == 2 and "tools/python/export_model.py" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategy", "pipeline", "--schedule", "zb_h1", "--split-size", "4"], ["zb_h1", "1f1b"]),
        (["--strategy", "tensor_parallel"], ["cannot shard", "it can"]),
        (["--strategy", "ddp", "--mixed-precision", "bfloat16"], ["--dtype"]),
        (["--strategy", "ddp", "--kernels", "reference"], ["--kernels", "no effect"]),
        (["--strategy", "pipeline", "--partition", "tutorial", "--split-size", "4"], ["no default cut", "flops"]),
    ],
)
def test_strategies_that_need_more_of_a_layer_are_refused(commands, files, options, words):
    done = commands.stratagem("run", *options, "--model", f"script:{files['resnet']}",
                              "--global-batch-size", "8", "--devices", "2", "--oversubscribe")  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr
