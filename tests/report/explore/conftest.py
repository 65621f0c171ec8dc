"""A browser for the map."""

from helpers.browsing import browser, opened

__all__ = ["browser", "opened"]
