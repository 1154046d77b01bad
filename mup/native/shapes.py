"""Annotations of compiled functions: elements and lengths of arrays, and 64 bits.

Type checkers see plain arrays. A length is a number, or ``ANY``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "ANY",
    "Floats1",
    "Floats2",
    "Floats3",
    "Floats4",
    "Longs1",
    "Longs2",
    "Numbers1",
    "Word",
]

ANY: Final = 0
"""A length that is not known beforehand."""

Word = Annotated[Any, np.uint64]
"""64 bits, such as the state of a stream of random numbers."""

Floats1 = Annotated[npt.NDArray[np.float64], (ANY,)]
Floats2 = Annotated[npt.NDArray[np.float64], (ANY, ANY)]
Floats3 = Annotated[npt.NDArray[np.float64], (ANY, ANY, ANY)]
Floats4 = Annotated[npt.NDArray[np.float64], (ANY, ANY, ANY, ANY)]
Longs1 = Annotated[npt.NDArray[np.int64], (ANY,)]
Longs2 = Annotated[npt.NDArray[np.int64], (ANY, ANY)]
Numbers1 = Annotated[npt.NDArray[np.uint32], (ANY,)]
