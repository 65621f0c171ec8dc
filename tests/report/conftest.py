"""The browser of the tests of the map."""

from evaluation.explore.conftest import browser

__all__ = ["browser"]
