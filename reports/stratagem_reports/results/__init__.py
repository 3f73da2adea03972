"""Results files: read, checked, and given as plain values."""
