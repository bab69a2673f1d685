"""The kinds of arrays, and what one of them holds for "no class", named once."""

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
TextArray = NDArray[np.str_]

NO_CLASS = -1
"""What stands for the class of a draw whose scores single out none."""
