"""The report of one results file: a page, Markdown, or a table for other programs."""
