"""Corpora of measured schedules: configurations, append-only logs, collecting."""

__all__: list[str] = []
