"""Whether one build or results file is slower than another: what `stratagem compare` says.

Times are compared by statistics (`mann_whitney` for two files, `group_sequential` for interleaved
rounds), deterministic metrics by equality (`deterministic`); `verdicts` joins both, and each
renderer (`console`, `markdown`, `document`, `junit`) only shows the resulting `Comparison`, in the
words and numbers of `formatting`.
"""
