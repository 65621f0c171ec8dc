"""`gnnperf explore`: the embedding space as a page."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.options import ANY_PATH, nests_checkpoint_option
from gnnperf.cli.output import Report, Verb, progress
from gnnperf.cli.page import check_page
from gnnperf.documents import replacing


@click.command(cls=Verb)
@click.option(
    "--store", "locations", metavar="STORE", multiple=True,
    help="Map this schedule store, a folder or a URI; give several for one map of all."
    "  [default: that of the checkpoint]",
)  # fmt: skip
@nests_checkpoint_option
@click.option(
    "--output", "-o", "--report", "output", type=ANY_PATH, default=Path("map.html"),
    show_default=True, metavar="FILE.html", help="Where to write the page.",
)  # fmt: skip
def explore(locations: tuple[str, ...], checkpoint: Path, output: Path) -> Report:
    """Write a map of all loop nests in a store: one HTML page that needs nothing else.

    Every mark is a nest; near ones are those that the same schedules speed up. Colours show the family, the
    best schedule or the speedup; a nest shows its loops, its best schedule and its nearest neighbours. The
    encoder is the checkpoint's; nests that it has not embedded yet are embedded for the page alone.
    """
    import numpy as np
    from rich.text import Text

    from gnnperf.errors import InputError
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.report.explore import gather, make_page, project
    from gnnperf.store import Store

    check_page(output, "--output")
    bundle = load_checkpoint(checkpoint, Bundle)
    stores = [Store.open(location) for location in locations or (str(checkpoint / "store"),)]
    total = sum(store.info().nests for store in stores)
    if not total:
        searched = ", ".join(store.location for store in stores)
        raise InputError(
            f"expected a schedule store with nests, got none in {searched}; fill it with `gnnperf retrieve`"
        )
    with progress("reading nests", total) as advance:
        nests = gather(stores, bundle, advance)
    click.echo(f"gnnperf: placing {len(nests):,} nests on the plane", err=True)
    places = project(np.stack([nest.embedding for nest in nests]))
    page = make_page(nests, places, bundle.encoder_id)
    with replacing(output) as partial:
        size_bytes = partial.write_bytes(page.html.encode())
    document = {
        "path": output,
        "nests": page.nests,
        "families": page.families,
        "measurements": page.measurements,
        "bytes": size_bytes,
        "encoder_id": bundle.encoder_id,
        "devices": page.devices,
        "stores": [store.location for store in stores],
    }
    words = f"{page.nests:,} nests of {page.families} families, {size_bytes / 1e6:.1f} MB"
    return Report(document, Text(f"{output}: {words}; open it in a browser"))
