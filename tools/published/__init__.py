"""The published figures: what is measured, the recorded files, and the pages that show them."""
