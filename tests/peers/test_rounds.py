import json
import sys

import pytest
from peer_comparison.contender import Contender, Launchable, WrongSteps, parse_peer
from peer_comparison.ratios import Ratio
from peer_comparison.rounds import order_of_round, run_rounds

ANSWER = """
import json, sys
with open(sys.argv[1], "a") as log:
    log.write(sys.argv[2] + " ")
print(json.dumps({"peer": sys.argv[2], "step_ms": json.loads(sys.argv[3]), "loss": 1.0}))
"""
FAIL = "import sys; sys.exit('RuntimeError: no luck')"
HANG = "import time; time.sleep(60)"


def launchable(code, *arguments):
    return Launchable((sys.executable, "-c", code, *arguments), {}, parse_peer("system"))


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def answering(log, name, step_ms=(1.0, 3.0), **changes):
    return Contender(name, launchable(ANSWER, str(log), name, json.dumps(step_ms)), **changes)


def test_order_is_a_permutation_that_seed_and_round_determine():
    names = list("abcdefgh")
    orders = [order_of_round(names, 7, index) for index in range(1, 7)]
    assert all(sorted(order) == names for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert orders == [order_of_round(names, 7, index) for index in range(1, 7)]
    assert orders != [order_of_round(names, 8, index) for index in range(1, 7)]


def test_every_round_launches_each_contender_once_in_its_order(log):
    contenders = [answering(log, name) for name in "abc"]
    result = run_rounds(contenders, rounds=3, seed=1, limit_s=30)
    expected = [name for index in (1, 2, 3) for name in order_of_round("abc", 1, index)]
    assert log.read_text().split() == expected
    assert [sample.contender for sample in result.samples] == expected
    assert [sample.position for sample in result.samples] == [0, 1, 2] * 3
    assert result.finished_rounds == 3
    assert result.step_times()["a"] == {1: 2.0, 2: 2.0, 3: 2.0}
    assert {name: len(peaks) for name, peaks in result.peaks().items()} == dict.fromkeys("abc", 3)
    assert json.loads(json.dumps(result.as_json()))["samples"][0]["step_ms"] == [1.0, 3.0]


def test_memory_that_a_rank_answers_counts_where_the_system_has_less(log):
    more = 2**50
    answers = f"""
import json
print(json.dumps({{"step_ms": [1.0], "loss": 1.0, "peak_resident_bytes": {more}}}))
"""
    contenders = [Contender("ranks", launchable(answers)), answering(log, "alone")]
    peaks = run_rounds(contenders, rounds=1, seed=1, limit_s=30).peaks()
    assert peaks["ranks"] == [more]
    assert 0 < peaks["alone"][0] < more


def test_a_failure_is_reported_once_and_the_others_go_on(log):
    contenders = [
        Contender("bad", launchable(FAIL)),
        answering(log, "good"),
        Contender("slow", launchable(HANG)),
    ]
    result = run_rounds(contenders, rounds=2, seed=1, limit_s=1.5)
    assert result.failures == {
        "bad": "round 1: exit code 1: RuntimeError: no luck",
        "slow": "round 1: no result within 1.5 s",
    }
    assert log.read_text().split() == ["good", "good"]
    assert list(result.step_times()) == ["good"]


def test_an_unavailable_contender_is_never_launched(log):
    contenders = [answering(log, "here"), answering(log, "away", unavailable="not installed")]
    result = run_rounds(contenders, rounds=1, seed=1, limit_s=30)
    assert result.failures == {"away": "not installed"}
    assert log.read_text().split() == ["here"]


def test_preflight_runs_once_before_the_rounds_and_decides(log):
    passes = answering(log, "passes", preflight=answering(log, "check").timed)
    stopped = answering(log, "stopped", preflight=launchable(FAIL))
    result = run_rounds([passes, stopped], rounds=2, seed=1, limit_s=30)
    assert log.read_text().split() == ["check", "passes", "passes"]
    assert result.failures["stopped"].startswith("before the rounds: exit code 1")


def test_rounds_end_when_nobody_is_left():
    result = run_rounds([Contender("bad", launchable(FAIL))], rounds=9, seed=1, limit_s=30)
    assert result.finished_rounds == 1
    assert result.samples == []


def test_an_interrupt_keeps_finished_rounds_only(log):
    contenders = [answering(log, name) for name in "ab"]
    started = []

    def interrupt_in_round_two(contender, index, left):
        started.append((index, len(left)))
        if started[-1] == (2, 1):
            raise KeyboardInterrupt

    result = run_rounds(contenders, 3, 1, 30, progress=interrupt_in_round_two)
    assert result.interrupted
    assert result.finished_rounds == 1
    assert {sample.round for sample in result.samples} == {1}
    assert len(result.samples) == 2


def test_the_later_rounds_go_on_without_candidates_that_lost(log):
    contenders = [answering(log, name, [ms]) for name, ms in {"a": 1.0, "b": 2.0, "c": 3.0}.items()]
    ratios = [Ratio("r", ("a", "b"), ("c",))]
    result = run_rounds(contenders, rounds=4, seed=1, limit_s=30, ratios=ratios)
    assert result.selection_rounds == 1
    assert {name: list(of) for name, of in sorted(result.step_times().items())} == {
        "a": [1, 2, 3, 4], "b": [1], "c": [1, 2, 3, 4],
    }  # fmt: skip


def test_a_candidate_that_is_not_much_slower_gets_another_chance(log):
    """After the first of two rounds that choose, 30% slower is too slow and 20% is not."""
    contenders = [answering(log, name, [ms]) for name, ms in {"a": 1.0, "b": 1.2, "c": 1.4}.items()]
    result = run_rounds(contenders, 8, 1, 30, ratios=[Ratio("r", ("a", "b", "c"), ("d",))])
    rounds = {name: len(of) for name, of in result.step_times().items()}
    assert (result.selection_rounds, rounds) == (2, {"a": 8, "b": 2, "c": 1})


def test_a_launch_that_took_other_steps_is_in_no_ratio(log):
    def prove(contender, output):
        if contender.name == "wrong" and log.read_text().split().count("wrong") == 2:
            raise WrongSteps("the loss of step 0 is 1, one device's is 2")
        return f"{contender.name} is right: {len(output.stdout.splitlines())}"

    contenders = [answering(log, name) for name in ("right", "wrong")]
    result = run_rounds(contenders, rounds=3, seed=1, limit_s=30, prove=prove)
    assert result.wrong == ["wrong"]
    assert result.failures == {"wrong": "round 2: the loss of step 0 is 1, one device's is 2"}
    assert list(result.step_times()) == ["right"]
    assert {sample.proof for sample in result.samples if sample.contender == "right"} == {
        "right is right: 1"
    }


def test_a_single_round_chooses_nothing_and_leaves_nobody_out(log):
    contenders = [answering(log, name) for name in "abc"]
    ratios = [Ratio("r", ("a", "b"), ("c",))]
    assert len(run_rounds(contenders, 1, 1, 30, ratios=ratios).samples) == 3


def test_results_are_offered_after_every_round(log):
    seen = []
    run_rounds(
        [answering(log, "a")], 2, 1, 30, after_round=lambda r: seen.append(r.finished_rounds)
    )
    assert seen == [1, 2]
