"""Runs Stratagem and its peers interleaved, and compares their step times."""
