"""ResNet-50 on one core and pipelined over two, against PyTorch."""

from peer_comparison.contender import Contender
from peer_comparison.contenders import Scenario, Settings, names, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio

MODEL = "resnet50"
FORMATS = ("nchw", "channels_last")
# The residual blocks as a cut names them: "layer3" is the first of layer3.
BLOCKS = [
    f"layer{layer}.{index}" if index else f"layer{layer}"
    for layer, blocks in enumerate((3, 4, 6, 3), start=1)
    for index in range(blocks)
]
# The cut of each schedule; None stands for the user's cuts. PyTorch's `interleaved` keeps backward
# passes whole, and its `interleaved_zero_bubble` splits them.
FOUR_STAGES = "layer2+layer3+layer4"
V_SHAPED = "layer2.1+layer3+layer4"  # the first and the last stage are on one device
OUR_CUTS = {"gpipe": None, "1f1b": None, "zb_h1": None, "zb_h2": None}
OUR_CUTS |= {"interleaved_1f1b": FOUR_STAGES, "zb_v": V_SHAPED}
TORCH_CUTS = {
    "gpipe": None,
    "1f1b": None,
    "interleaved": FOUR_STAGES,
    "interleaved_zero_bubble": FOUR_STAGES,
    "zb_v": V_SHAPED,
    "dualpipe_v": V_SHAPED,
}
FEWEST_PARTS = {"dualpipe_v": 4}  # at least as many micro-batches as stages
WHOLE_BACKWARD = ("1f1b", "interleaved")  # schedules that accept compiled stages


def _parts(settings: Settings, cuts: dict[str, str | None]) -> list[tuple[str, str]]:
    """Return the name and the options of each pipeline; both sides take the same options."""
    return [
        (
            f"{schedule}/split:{split}" + ("" if cut in (own, *Settings.cuts) else f"/cut:{cut}"),
            f"--schedule {schedule} --cut {cut} --split-size {split}",
        )
        for schedule, own in cuts.items()
        for cut in ([own] if own else settings.cuts)
        for split in settings.splits
        if settings.batch // split >= FEWEST_PARTS.get(schedule, 2)
    ]


def resnet_single_and_pipeline(settings: Settings) -> Scenario:
    """Return the main job: the strategies of both sides on one and two cores."""

    def row(name: str, options: str) -> Contender:
        return stratagem_row(name, MODEL, f"--strategy {options}", settings)

    def peer(name: str, options: str) -> list[Contender]:
        return torch_peer(name, MODEL, options, settings)

    single = row("single", "single --devices 1")
    cut_model = row("model_parallel", "model_parallel --devices 2")
    one_process, two_processes = (
        [
            row(f"pipeline/{name}{part}", f"pipeline --devices 2 {ranks} {options}")
            for part, options in _parts(settings, OUR_CUTS)
        ]
        for name, ranks in (("", ""), ("ranks:2/", "--ranks 2"))
    )
    nchw, last = (peer(f"single/{name}", f"single --memory-format {name}") for name in FORMATS)
    compiled = peer(
        "single/channels_last/compiled", "single --memory-format channels_last --compile"
    )
    torch = [
        contender
        for layout in FORMATS
        for part, options in _parts(settings, TORCH_CUTS)
        for contender in peer(
            f"pipelining/{layout}/{part}", f"pipelining --memory-format {layout} {options}"
        )
    ]
    torch += [
        contender
        for schedule in WHOLE_BACKWARD
        for part, options in _parts(settings, {schedule: TORCH_CUTS[schedule]})
        for contender in peer(
            f"pipelining/channels_last/compiled/{part}",
            f"pipelining --memory-format channels_last --compile {options}",
        )[-1:]
    ]
    ratios = (
        *_single_ratios(single, nchw, last, compiled),
        Ratio("single over model_parallel", (single.name,), (cut_model.name,), 0.95),
        *_pipeline_ratios(cut_model, one_process, two_processes, torch),
    )
    ours = (single, cut_model, *one_process, *two_processes)
    return Scenario((*ours, *nchw, *last, *compiled, *torch), ratios)


def _single_ratios(single: Contender, nchw: list, last: list, compiled: list) -> list[Ratio]:
    ours = (single.name,)
    return [
        Ratio("single: all, over PyTorch NCHW", names(nchw, False), ours),
        Ratio("  layout: NCHW to channels_last", names(nchw, False), names(last, False)),
        Ratio("  allocator: channels_last", names(last, False), names(last, True)),
        Ratio("  design: over channels_last with allocator", names(last, True), ours),
        Ratio("  allocator: NCHW", names(nchw, False), names(nchw, True)),
        Ratio("  compiler: channels_last with allocator", names(last, True), names(compiled, True)),
        Ratio("single: over channels_last as installed", names(last, False), ours, 1.25),
        Ratio("single: over PyTorch's best with allocator", names(nchw + last, True), ours, 1.05),
        Ratio("single: over compiled channels_last", names(compiled), ours, 1.00),
    ]


def _pipeline_ratios(cut_model: Contender, one: list, two: list, torch: list) -> list[Ratio]:
    best, pipelined, ranked = names(torch, True), names(one), names(two)
    first = "1f1b"
    return [
        Ratio("pipeline: over model_parallel", (cut_model.name,), pipelined, 1.40),
        Ratio("pipeline: over torch's best as installed", names(torch, False), pipelined, 1.30),
        Ratio("pipeline: over torch's best with allocator", best, pipelined, 1.15),
        Ratio("  the same, ours in two processes", best, ranked, 1.15),
        Ratio("  the same, 1f1b of both", names(torch, True, first), names(two, part=first)),
        Ratio("  two processes over one", ranked, pipelined),
        Ratio("  torch: NCHW over channels_last", *(names(torch, True, part) for part in FORMATS)),
    ]
