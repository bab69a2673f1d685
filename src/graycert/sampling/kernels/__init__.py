"""Compiled kernels of the sampling engine: one file per convolution, on the scaffold of `rows` and `messages`."""
