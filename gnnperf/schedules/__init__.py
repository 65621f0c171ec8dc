"""What makes a program fast: recipes of loop nests, traces of TVM functions."""

__all__: list[str] = []
