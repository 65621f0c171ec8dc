"""`gnnperf train`: LightningCLI, and the releases of all models."""

from __future__ import annotations

import click

from gnnperf.cli.output import Report, Verb
from gnnperf.cli.release import release

ANSWERED_WITHOUT_TRAINING = frozenset({"-h", "--help", "--print_config", "--print_shtab"})


class LightningVerb(Verb):
    """Hands everything but `--json` on to LightningCLI, and its help too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [a for a in args if a == "--json"]
        return super().parse_args(ctx, [*own, "--", *(a for a in args if a != "--json")])

    def invoke(self, ctx: click.Context) -> None:
        arguments = ctx.params["arguments"]
        if any(a.partition("=")[0] in ANSWERED_WITHOUT_TRAINING for a in arguments):
            # LightningCLI prints the answer on standard output and exits.
            from gnnperf.training import train as run

            run([str(self.name), *arguments])
        super().invoke(ctx)


@click.group()
def train() -> None:
    """Train models on measurements.

    \b
    gnnperf train fit -c configs/models/first.yaml
    gnnperf train fit -c configs/models/first.yaml --data.corpora '[FOLDER]' --trainer.max_epochs 50
    gnnperf train test -c configs/models/first.yaml --ckpt_path runs/first/version_0/checkpoints/best.ckpt
    gnnperf train fit --help        all options
    gnnperf train release loop-nests --corpus FOLDER -o CHECKPOINT

    `fit` ends with a checkpoint (weights and metadata) in the folder of the run, from the epoch that did best
    on the validation families. Runs are logged as CSV and, offline, for Weights & Biases; WANDB_MODE=online
    uploads as it goes. `release` makes what comes with gnnperf.
    """


train.add_command(release)


def _lightning(subcommand: str, about: str) -> None:
    @train.command(subcommand, cls=LightningVerb, help=about, add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[LIGHTNING OPTIONS]...")
    def verb(arguments: tuple[str, ...]) -> Report:
        from rich.text import Text

        from gnnperf.training import train as run

        result = run([subcommand, *arguments])
        lines = [f"{name} {value:.4f}" for name, value in sorted(result.figures.items())]
        if result.bundle_folder:
            lines.append(f"bundle {result.bundle_folder}, encoder {result.encoder_id}")
        document = {
            "subcommand": result.subcommand,
            "folder": result.folder,
            "bundle": result.bundle_folder,
            "encoder_id": result.encoder_id,
            "figures": result.figures,
            "epochs": result.epochs,
        }
        return Report(document, Text("\n".join(lines)))


_lightning("fit", "Train an encoder and its retrieval head on a corpus of measurements.")
_lightning("validate", "Replay the validation families with a trained encoder.")
_lightning("test", "Replay the test families with a trained encoder.")
