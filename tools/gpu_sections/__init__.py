"""The sections of tools/gpu_check: commands, shares of the time, and the page of results."""
