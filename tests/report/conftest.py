"""A browser for the pages of reports."""

from helpers.browsing import browser, opened

__all__ = ["browser", "opened"]
