"""Charts and reports from Stratagem's results files.

Packages, each of which imports only those before it: `results` (files as values), `analysis` (what
follows from the rows), `charts`, `report` (the page, Markdown, CSV), then `comparison` and
`history`, and `commands` (the subcommands).
"""
