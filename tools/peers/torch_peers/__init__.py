"""The peers as PyTorch users write them: the models, and one file per training strategy."""
