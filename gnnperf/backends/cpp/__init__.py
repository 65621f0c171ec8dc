"""Recipes of loop nests as C++: built, verified and timed."""

__all__: list[str] = []
