"""Products and convolutions of TVM functions as calls of libraries: oneDNN and OpenBLAS."""

__all__: list[str] = []
