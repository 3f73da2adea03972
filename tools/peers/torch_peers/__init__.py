"""What PyTorch users write: the models, and one file for each way to train them."""
