"""The command: `python -m stratagem_reports report RESULTS.json`, `... compare` and the like.

Exit codes: 0 done; 1 a regression; 2 bad usage or input, with one line on stderr that says what,
where, and what would be right; 3 nothing matched; 4 a launch failed, or output was lost; 5 cannot
tell, where that is asked for; 130 interrupted.
Files appear whole or not at all.
"""

import argparse
import contextlib
import errno
import os
import sys
from pathlib import Path

from .commands import compare, gantt, history, report, schema
from .results.errors import InputError

_OF_A_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parse(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except InputError as error:
        _report(f"stratagem {options.command}: {' '.join(str(error).split())}")
        return 2
    except OSError as error:
        where = error.filename
        if where is None and error.errno in _OF_A_WRITE:
            where = "cannot write the standard output"
            # Python's end flushes what is left of it once more: into nothing.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = error.strerror or str(error)
        _report(f"stratagem {options.command}: {f'{where}: ' if where else ''}{reason}")
        return 4
    except ModuleNotFoundError as error:
        _report(
            f"stratagem {options.command}: the Python package {error.name} is missing from "
            f"{sys.executable}; {_remedy()}, or name another interpreter in STRATAGEM_PYTHON"
        )
        return 2


def _report(line: str) -> None:
    """Prints an error; where standard error takes nothing, the exit code alone reports it."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)


def _remedy() -> str:
    """How the missing packages come into the environment that the command looks for first."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "requirements.txt").exists():
        return "tools/run installs it into .venv"
    python = f"{root}/.venv/bin/python"
    return f"python3 -m venv {root}/.venv && {python} -m pip install -r {root}/requirements.txt"


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="stratagem", description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (report, compare, history, schema, gantt):
        command.register(commands)
    words = sys.argv[1:] if arguments is None else arguments
    own, rest = _split(words)
    options, unknown = parser.parse_known_args(own)
    if unknown:
        prog = " ".join(filter(None, ("stratagem", options.command, getattr(options, "kind", ""))))
        parser.exit(2, f"{prog}: unrecognized arguments: {' '.join(unknown)}; see --help\n")
    if rest and not hasattr(options, "run_options"):
        parser.error(f"-- {rest[0]}: {options.command} takes no options of another command")
    if rest:
        options.run_options = rest
    return options


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first "--"; argparse alone would mix the two."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage before it."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


if __name__ == "__main__":
    sys.exit(main())
