"""Writes a set of files so that a failure leaves none of them half-written.

All are written aside first, in the same folder, handed to the disk, and renamed only when every one
is complete. A disk that is full by quota or far away may report that only when it is handed them.
"""

import contextlib
import os
from pathlib import Path

from .errors import InputError


def write_together(folder: Path, contents: dict[str, bytes], remove: list[str] = ()) -> list[Path]:
    """Puts the named contents into the folder (made if absent) and removes the names in `remove`.

    Returns the paths written. InputError when the folder cannot be made or written; what stood
    there before is then untouched.
    """
    aside: dict[Path, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            target = folder / name
            if target.is_dir():
                raise InputError(f"{target}: is a folder; expected a file's name")
            temporary = folder / f".{name}.{os.getpid()}.partial"
            aside[target] = temporary
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in aside.items():
            os.replace(temporary, target)
        for name in remove:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{folder}: cannot be written: {reason}; name another folder") from None
    finally:
        for temporary in aside.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    return list(aside)
