"""The subcommands written in Python, one a module.

Each module has `register(commands)`, which adds its parser to argparse's subcommands and sets
`run`, a function of the parsed options that returns the exit code. Imports that cost time
(vl_convert, scipy) stand inside `run`, so that a wrong argument is refused at once.
"""
