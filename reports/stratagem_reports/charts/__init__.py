"""The charts: one module each, found by `registry`; `render` draws them.

Only `render` imports what draws, so that bad input is refused before it is loaded.
"""
