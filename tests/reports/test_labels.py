"""Names for people."""

from types import SimpleNamespace

import pytest
from stratagem_reports.analysis.labels import row_label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (
            "context_parallel/gpt-long/devices:2/batch:1/context_exchange:ring/optimizer:adamw",
            "Context parallel, ring, optimizer adamw",
        ),
        (
            "sequence_parallel/script:gpt.pt/devices:2/keep_gathered/no_async/oversubscribe",
            "Sequence parallel, keep gathered, no async",
        ),
    ],
)
def test_a_rows_label_has_the_words_of_its_options_and_switches(name, label):
    strategy = name.partition("/")[0]
    row = SimpleNamespace(strategy=strategy, name=name, split_size=None, option=lambda _: None)
    assert row_label(row) == label
