"""A browser for the map."""

from browsing import browser, opened

__all__ = ["browser", "opened"]
