"""Runs Stratagem and its peers interleaved and states how they compare."""
