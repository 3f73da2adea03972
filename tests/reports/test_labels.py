"""Names for people."""

from types import SimpleNamespace

from stratagem_reports.analysis.labels import row_label


def test_a_rows_label_has_the_words_of_its_options():
    row = SimpleNamespace(
        strategy="context_parallel",
        name="context_parallel/gpt-long/devices:2/batch:1/sequence:4096/context_exchange:ring",
        split_size=None,
        option=lambda name: None,
    )
    assert row_label(row) == "Context parallel, context exchange ring"


def test_a_switch_sets_rows_apart():
    row = SimpleNamespace(
        strategy="sequence_parallel",
        name="sequence_parallel/script:gpt.pt/devices:2/batch:8/keep_gathered/no_async/oversubscribe",
        split_size=None,
        option=lambda name: None,
    )
    assert row_label(row) == "Sequence parallel, keep gathered, no async"
