"""The figures and tables of the paper, as data, and sweeps over smoothing parameters."""
