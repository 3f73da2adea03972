"""Human names for strategies, models, kinds of action and parts of a step, and for quantities."""

import math

from ..results.load import Row

STRATEGIES = {
    "single": "Single device",
    "model_parallel": "Model parallel",
    "pipeline": "Pipeline",
    "ddp": "DDP",
    "ddp_model_parallel": "DDP + model parallel",
    "tensor_parallel": "Tensor parallel",
    "sequence_parallel": "Sequence parallel",
    "data_parallel": "DataParallel",
    "zero1": "ZeRO-1",
    "zero2": "ZeRO-2",
    "zero3": "ZeRO-3",
}
_MODELS = {"resnet50": "ResNet-50", "resnet18": "ResNet-18", "mlp": "MLP", "toy": "Toy model"}
_MODELS |= {"gpt-tiny": "GPT tiny", "gpt-small": "GPT small", "gpt-long": "GPT long"}
_MODELS |= {"gpt2": "GPT-2", "gpt2-xl": "GPT-2 XL"}
_SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "naive": "naive"}
_SCHEDULES |= {"interleaved_1f1b": "Interleaved 1F1B", "zb_h1": "ZB-H1"}
_SCHEDULES |= {"zb_h2": "ZB-H2", "zb_v": "ZB-V", "v_half": "V-Half", "v_min": "V-Min"}
_SCHEDULES |= {"zb_auto": "ZB-auto"}
_SCHEDULES |= {"dual_pipe_v": "DualPipeV", "looped_bfs": "looped BFS"}
_SCHEDULES |= {"interleaved_zero_bubble": "Interleaved zero bubble"}
_USUAL = {"devices", "batch", "image", "sequence", "cores", "split", "schedule"}
_USUAL |= {"protocol", "iterations", "repeats", "threads"}
# Options whose values need no name beside them.
_CLEAR = {"context_exchange", "context_order"}
# Parts of a name that are no switch of the row, or that its marks have.
_NO_OPTION = {"oversubscribe", "manual_time", "real_time", "process_time"}
_DEVICES = {"cpu": "CPU", "cuda": "CUDA"}
_MARKUP = {letter: f"\\{letter}" for letter in "\\|<>*[]~&"} | {"@": "@\u200b"}
_MOST_DECIMALS = 12
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def strategy_label(strategy: str) -> str:
    """The strategy's name for people."""
    return STRATEGIES.get(strategy, sentence(strategy))


def schedule_label(schedule: str) -> str:
    """The schedule's name for people."""
    return _SCHEDULES.get(schedule, schedule)


def sentence(identifier: str) -> str:
    """A snake_case word as words with a capital at the front."""
    words = identifier.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def cores(row: Row) -> int:
    """CPU cores of each device that the row uses; 1 where it does not say."""
    value = row.option("cores_per_device") or 1
    return int(value) if str(value).isdigit() else 1


def row_label(row: Row) -> str:
    """A short name: strategy, and what sets rows of one strategy apart."""
    options = row.name.split("/")[2:]  # after the strategy and the model
    tokens = dict(part.split(":", 1) for part in options if ":" in part)
    switches = [part for part in options if ":" not in part and part not in _NO_OPTION]
    parts = [strategy_label(row.strategy)]
    if tokens.get("cores"):
        parts.append(f"{tokens['cores']} cores")
    if row.split_size is not None:
        parts.append(f"split {row.split_size}")
    if row.option("schedule"):
        parts.append(schedule_label(str(row.option("schedule"))))
    others = {key: value for key, value in tokens.items() if key not in _USUAL}
    parts += [
        value if key in _CLEAR else f"{key.replace('_', ' ')} {value}"
        for key, value in others.items()
    ]
    parts += [switch.replace("_", " ") for switch in switches]
    return ", ".join(parts)


def workload_label(row: Row) -> str:
    """What is trained on what, e.g. "ResNet-50, batch 48, 128x128 images, 2 CPU devices"."""
    parts = [_MODELS.get(row.model, row.model)]
    if row.option("global_batch_size"):
        parts.append(f"batch {row.option('global_batch_size')}")
    if row.option("image_size"):
        parts.append(f"{row.option('image_size')}\u00d7{row.option('image_size')} images")
    if row.option("sequence_length"):
        parts.append(f"sequence {row.option('sequence_length')}")
    if row.option("devices"):
        device = str(row.option("device") or "")
        noun = f"{_DEVICES.get(device, device)} device".strip()
        parts.append(counted(row.option("devices"), noun))
    return ", ".join(parts)


def time_text(milliseconds: float) -> str:
    """A time with three significant digits in the unit that suits it."""
    value, unit = (milliseconds / 1e3, "s") if milliseconds >= 1e3 else (milliseconds, "ms")
    return f"{significant(value)} {unit}"


def size_text(size: float) -> str:
    """A number of bytes in the unit that suits it, e.g. "64 KiB"."""
    unit, name = next(((unit, name) for unit, name in _UNITS if size >= unit), (1, "B"))
    return f"{size / unit:g} {name}"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, without exponent: 2.2 becomes "2.20"."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded number
    return f"{value:,.{min(max(digits - 1 - exponent, 0), _MOST_DECIMALS)}f}"


def figure(value: float) -> str:
    """Return a whole number as it is, another with four significant digits."""
    return f"{value:,.0f}" if float(value).is_integer() else significant(value, 4)


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction as a percentage."""
    return f"{100.0 * fraction:.{digits}f}%"


def markdown_text(words: str) -> str:
    """One line in which nothing of a name becomes markup, a link or a mention."""
    return " ".join(words.split()).translate(str.maketrans(_MARKUP)).replace("://", ":\\//")


def listing(words: list[str]) -> str:
    """Words joined as in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(count: int, noun: str) -> str:
    """A number of things, e.g. "1 run" or "3 runs"; for nouns that add an s, or es after ch."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{'' if count == 1 else ending}"
