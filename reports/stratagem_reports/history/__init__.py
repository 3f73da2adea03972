"""Results over time: the store, and what is read from it and written to it.

`points` is one run of one row and its line of JSON, `store` the folder of files, `add` turns
results files into runs, `series` puts runs in order, `show` and `trend` read them, `export`
writes them for other tools.
"""
