"""Complex numbers as `ctypes` passes them by value: as `std::complex`, a pair of numbers.

What stands here is written into the scripts that run tuned kernels, too.
"""

import ctypes


class c_complex64(ctypes.Structure):
    _fields_ = (("real", ctypes.c_float), ("imag", ctypes.c_float))

    def __init__(self, value: complex = 0j) -> None:
        super().__init__(value.real, value.imag)


class c_complex128(ctypes.Structure):
    _fields_ = (("real", ctypes.c_double), ("imag", ctypes.c_double))

    def __init__(self, value: complex = 0j) -> None:
        super().__init__(value.real, value.imag)
