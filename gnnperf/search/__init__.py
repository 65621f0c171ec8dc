"""Search of a schedule space with measurements: mutation of recipes, evolution of traces."""

__all__: list[str] = []
