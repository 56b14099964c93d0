"""Sizes of tensors: what layers and functions of PyTorch give, and which sizes they refuse."""
