"""Schedules of TVM functions, compiled in memory, verified and timed in forks."""

__all__: list[str] = []
