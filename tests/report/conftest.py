"""A browser for the pages of reports."""

from browsing import browser, opened

__all__ = ["browser", "opened"]
