"""What follows from a file's rows: numbers, which rows belong together, and their names."""
