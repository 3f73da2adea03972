"""Whether one build or results file is slower than another: what `stratagem compare` says.

Times are compared by statistics (`separate` for two files, `procedure` for interleaved rounds),
what a run must repeat exactly by equality (`exact`); `verdicts` joins both, and each renderer
(`console`, `markdown`, `document`, `junit`) only shows the resulting `Comparison`.
"""
