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
