"""The published figures: scenarios, recorded files, and the pages that show them."""
