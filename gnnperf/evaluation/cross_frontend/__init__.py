"""Schedules carried over from one frontend to the other. Import from its modules: `kernels` is read before a
process is forked that must not have what `study` loads."""

__all__: list[str] = []
