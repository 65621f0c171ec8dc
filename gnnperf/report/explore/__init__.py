"""A map of the embedding space: all nests of some stores on one self-contained HTML page."""

from gnnperf.report.explore.gathering import MappedNest, gather
from gnnperf.report.explore.page import Page, make_page
from gnnperf.report.explore.plane import nearest_neighbours, project

__all__ = ["MappedNest", "Page", "gather", "make_page", "nearest_neighbours", "project"]
