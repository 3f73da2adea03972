"""The one error that users see: a single line that says what, where, and what would be right."""


class InputError(Exception):
    """Bad input or an unusable place for the output; the command prints it and exits with 2."""
