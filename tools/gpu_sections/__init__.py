"""The sections of tools/gpu_check: what each runs, in how long, and the page of their results."""
