"""Frontends: from what users write to loop nests."""

__all__: list[str] = []
