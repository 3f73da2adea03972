"""Published figures: as they were published, and when ours may stand beside them."""

import fixture_results
import pytest
from stratagem_reports.load import load_results
from stratagem_reports.published import (
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    TUTORIAL_FIGURES,
    bubble_rates,
    throughputs,
)
from stratagem_reports.published_rules import compare_published, verdict_of
from stratagem_reports.selection import select


@pytest.fixture
def compared(write_json):
    def run(document):
        results = load_results(write_json(document))
        return compare_published(results, select(results))

    return run


def tutorial(times=(3.0, 3.21, 2.01), batch=120):
    """Rows of the tutorial's work: single, model parallel and pipeline at 20, and others slower."""
    document = fixture_results.results("tutorial", (10, 12, 20), False, 6)
    kept = []
    for entry in document["benchmarks"]:
        own = entry.get("stratagem")
        if own is None or entry["name"].endswith("cores:2"):
            continue
        own["config"]["global_batch_size"] = batch
        own["config"]["schedule"] = "gpipe" if own["strategy"] == "pipeline" else None
        by_split = {10: times[2] * 1.1, 12: times[2] * 0.97, 20: times[2]}
        by_strategy = {"single": times[0], "model_parallel": times[1]}
        value = by_strategy.get(own["strategy"]) or by_split[own["config"]["split_size"]]
        own["step_ms"] = [1000.0 * value * (1.0 + 0.001 * entry["repetition_index"])]
        kept.append(entry)
    return document | {"benchmarks": kept}


def of(comparisons, source):
    return [item for item in comparisons if item.source.key == source]


def pipelined(devices=8, micro_batches=24, bubble=0.25, model="gpt2", schedule="1f1b", marks=()):
    """One pipeline row whose devices had this bubble."""
    document = fixture_results.results(splits=(2,), failed=False)
    rows = [item for item in document["benchmarks"] if "/split:2" in item["name"]][:3]
    for entry in rows:
        own = entry["stratagem"]
        own["model"] = model
        own["marks"] = list(marks)
        own["config"] |= {
            "devices": devices,
            "split_size": 2,
            "global_batch_size": 2 * micro_batches,
            "schedule": schedule,
        }
        for device in own["devices"]:
            device["bubble"]["measured"] = bubble
    return document | {"benchmarks": rows}


def test_spot_checks_of_the_sources():
    assert [round(item.value, 2) for item in TUTORIAL_FIGURES] == [1.07, 1.49, 12, 1.54]
    table = {(item.model, item.stages, item.micro_batches): item.value for item in throughputs()}
    assert len(table) == 18
    assert table["Transformer-48", 8, 32] == 6.3 and table["AmoebaNet-D (18, 256)", 8, 32] == 3.48
    rates = {
        (item.model, item.schedule, item.stages, item.micro_batches): item
        for item in bubble_rates()
    }
    assert len(rates) == 48
    assert rates["28.3B", "zb_h2", 32, 256].value == 0.0257
    assert rates["1.5B", "interleaved_1f1b", 8, 24].chunks == 3
    # A published rate counts transfers too, so it is no less than the closed form.
    for item in rates.values():
        if item.schedule == "1f1b":
            closed = (item.stages - 1) / (item.micro_batches + item.stages - 1)
            assert closed <= item.value < closed + 0.05


def test_the_tolerance_is_the_largest_distance_that_reproduces():
    assert verdict_of(1.05, 1.0, 0.05) == REPRODUCED
    assert verdict_of(1.0501, 1.0, 0.05) == NOT_REPRODUCED
    assert verdict_of(0.9499, 1.0, 0.05) == NOT_REPRODUCED


def test_the_tutorials_work_is_judged(compared):
    found = of(compared(tutorial()), "tutorial")
    assert [item.verdict for item in found] == [REPRODUCED] * 4
    assert found[1].ours.startswith("1.49\u00d7") and "two CPU devices" in found[1].why
    found = of(compared(tutorial((3.0, 3.0, 2.4))), "tutorial")
    assert [item.verdict for item in found] == [
        NOT_REPRODUCED,
        NOT_REPRODUCED,
        REPRODUCED,
        NOT_REPRODUCED,
    ]


def test_other_work_is_shown_and_not_judged(compared):
    found = of(compared(tutorial(batch=48)), "tutorial")
    assert all(item.verdict == NOT_COMPARABLE and item.ours for item in found)
    assert all("batch 48, there 120" in item.why for item in found)
    found = of(compared(fixture_results.results()), "tutorial")
    assert "protocol steady, there tutorial" in found[0].why
    assert found[1].ours == "" and "split 20" in found[1].why


@pytest.mark.parametrize(
    ("bubble", "verdict"), [(0.25, REPRODUCED), (0.27, REPRODUCED), (0.28, NOT_REPRODUCED)]
)
def test_a_bubble_is_judged_where_stages_and_micro_batches_agree(compared, bubble, verdict):
    found = [
        item for item in of(compared(pipelined(bubble=bubble)), "zero_bubble") if item.ours
    ]
    assert [item.name for item in found] == [
        "1F1B, 1.5B, 8 stages, 24 micro-batches",
        "1F1B, 6.2B, 8 stages, 24 micro-batches",
    ]
    assert found[0].verdict == verdict and found[0].published == "24.3%"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "resnet50"}, "no equal layers"),
        ({"schedule": "interleaved_1f1b"}, "1 stages a device, there 3"),
    ],
)
def test_another_cut_of_the_work_is_not_comparable(compared, change, words):
    found = [item for item in of(compared(pipelined(**change)), "zero_bubble") if item.ours]
    assert found and all(item.verdict == NOT_COMPARABLE for item in found)
    assert words in found[0].why


@pytest.mark.parametrize(
    "change",
    [{"micro_batches": 25}, {"devices": 4}, {"marks": ["oversubscribed"]}, {"schedule": "gpipe"}],
)
def test_a_row_that_differs_does_not_stand_beside(compared, change):
    found = of(compared(pipelined(**change)), "zero_bubble")
    assert all(item.ours == "" and item.verdict == NOT_COMPARABLE for item in found)


def test_throughput_is_shown_beside_gpipes_and_never_judged(compared):
    document = pipelined(devices=2, micro_batches=1, schedule="gpipe")
    fast = pipelined(devices=8, micro_batches=32, schedule="gpipe")
    for entry in document["benchmarks"] + fast["benchmarks"]:
        entry["stratagem"]["config"]["global_batch_size"] = 64
    for entry in document["benchmarks"]:
        entry["name"] = entry["run_name"] = entry["name"] + "/base"
        entry["stratagem"]["config"]["split_size"] = 64
    for entry in fast["benchmarks"]:
        own = entry["stratagem"]
        own["step_ms"] = [value / 5.0 for value in own["step_ms"]]
    document["benchmarks"] += fast["benchmarks"]
    found = [item for item in of(compared(document), "gpipe") if item.ours]
    assert [item.name for item in found] == ["Transformer-48, 8 partitions, 32 micro-batches"]
    assert found[0].verdict == NOT_COMPARABLE and found[0].published == "6.30\u00d7"
