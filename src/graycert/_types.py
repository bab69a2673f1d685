"""The kinds of arrays, named once."""

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
TextArray = NDArray[np.str_]
