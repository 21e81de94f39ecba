"""The commands ``train`` and ``tune``, which take settings ``name=value`` for Hydra."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from multilab.cli import completion
from multilab.cli.files import with_registered_files
from multilab.cli.options import fresh_option

_Values = Callable[[], list[str]]


def _choices(*values: str) -> _Values:
    return lambda: list(values)


_SETTINGS: dict[str, _Values] = {
    "dataset": functools.partial(completion.names, "dataset"),
    "method": functools.partial(completion.names, "method"),
    "protocol": functools.partial(completion.names, "protocol"),
    "seed": _choices("0"),
    "observed": _choices("0.5"),
    "conventions": completion.presets,
    "metrics": completion.metrics,
    "publish": _choices("true", "false"),
    "engine": functools.partial(completion.names, "engine"),
    "engine.address": _choices("tls://"),
    "tracking": functools.partial(completion.names, "tracking"),
    "tracking.uri": _choices("sqlite:///mlflow.db"),
    "tracking.artifacts": list,
    "tune.n_trials": _choices("20", "50", "100"),
    "tune.metric": completion.metrics,
    "tune.folds": _choices("3"),
    "tune.order": _choices("1", "2"),
    "tune.sampler": _choices("TPESampler", "RandomSampler", "QMCSampler", "GridSampler"),
    "tune.timeout": _choices("600"),
    "tune.pruner": _choices("NopPruner", "MedianPruner"),
    "tune.storage": _choices("sqlite:///trials.db"),
}
"""The settings of a run, and the values that completion offers."""


class Settings(click.ParamType):
    """Settings ``name=value`` as Hydra reads them, with their completion."""

    name = "name=value"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names of settings or, after the sign, their values; the last of a list such as ``a,b``."""
        # completion receives an opening quote as it was typed
        offered = _offered(incomplete.lstrip("'\""), [str(word) for word in ctx.params.get(str(param.name)) or ()])
        return [CompletionItem(text) for text in sorted(set(offered)) if text.startswith(incomplete.lstrip("'\""))]


def _offered(incomplete: str, given: list[str]) -> list[str]:
    name, equals, value = incomplete.partition("=")
    if name.startswith("method."):
        return _arguments_of_method(given, name.removeprefix("method."), bool(equals))
    if not equals:
        return [*(f"{setting}=" for setting in _SETTINGS), "method."]
    if incomplete == "metrics=":
        return ["metrics=["]
    head = re.match(r"(?:.*[,\[])?", value)
    done = head.group() if head else ""
    taken = set(re.split(r"[,\[\]]", done))
    return [f"{name}={done}{choice}" for choice in _SETTINGS.get(name, list)() if choice not in taken]


def _arguments_of_method(given: list[str], argument: str, has_value: bool) -> list[str]:
    """Return the arguments of the method in the settings, or both values of a switch, or the value of another."""
    chosen = [word.partition("=")[2] for word in given if word.startswith("method=")]
    arguments = completion.arguments_of(chosen[-1] if chosen else "mlknn")
    if not has_value:
        return [f"method.{name}=" for name in arguments]
    if argument == "preprocessing":
        from multilab.cells.method import PREPROCESSING

        return [f"method.{argument}={scaling}" for scaling in PREPROCESSING]
    value = arguments.get(argument)
    if isinstance(value, bool):
        return [f"method.{argument}=true", f"method.{argument}=false"]
    return [] if value is None or isinstance(value, list | dict) else [f"method.{argument}={value}"]


def _overrides(settings: tuple[str, ...], multirun: bool, cfg: str | None) -> list[str]:
    """Return the arguments for Hydra, after registering the data files among them."""
    if any(word.startswith("study=") for word in settings):
        raise click.UsageError("No setting is called 'study'.")
    flags = ["-m"] if multirun else []
    return [*flags, *(["--cfg", cfg] if cfg else []), *with_registered_files(settings)]


def _with_settings(function: Any) -> Any:
    for option in (
        click.option(
            "--cfg", type=click.Choice(["job", "hydra", "all"]), help="Print the composed settings without running."
        ),
        click.option("-m", "--multirun", is_flag=True, help="Run a sweep: all combinations of a,b and glob(...)."),
        click.argument("settings", nargs=-1, type=Settings(), metavar="[NAME=VALUE]..."),
    ):
        function = option(function)
    return function


@click.command()
@_with_settings
@fresh_option
def train(settings: tuple[str, ...], multirun: bool, cfg: str | None, fresh: bool) -> int:
    """Fit and score a method; -m sweeps.

    A run has one cell per split of the dataset. Stored cells are not computed again.

    \b
    multilab train dataset=emotions method=mlwse_l1                  one method, 5 folds
    multilab train method=mlknn method.k=20 protocol=kfold10         other settings
    multilab train -m dataset=emotions,scene 'method=glob(mlwse_*)'  a sweep
    multilab train tune.n_trials=20 method=mlkelm                    tuned inside every training set
    multilab train dataset=./my.csv labels='tag_*' method=br         a file of your own
    multilab train dataset=emotions method=br observed=0.5           half of the training labels hidden

    \b
    Settings (name=value, with defaults):
      dataset=digit-segments  a name of `multilab datasets list`, or a data file with the options of
                              `multilab datasets add --help` as labels='tag_*' drop=id
      method=mlknn            a name of `multilab methods list`, or a YAML file
      method.ARGUMENT=VALUE   an argument of the method: `multilab methods show NAME`
      protocol=kfold5         the splits: kfold3, kfold5, kfold10, holdout, ..., or protocol.seed=1
      seed=0                  the root of all seeds of the method; protocol.seed is the seed of the folds
      observed=1.0            the share of the training labels that methods see; the others are hidden at random,
                              'observed={share:0.5,hidden:absent}' shows them as 0
      conventions=default     the preset of the metrics
      metrics=[a,b]           the metrics to print
      tune.n_trials=0         trials of a search inside every training set; the other settings of the search are
                              those of `multilab tune --help`
      publish=true            show the runs in MLflow
      tracking.uri=URI        the MLflow store; tracking.artifacts=URI, tracking=NAME: conf/tracking/NAME.yaml
      engine=local            where cells run: engine=dask engine.address=tls://HOST:8786 is a Dask cluster (extra dask)
      hydra/launcher=joblib   run a sweep on a launcher of Hydra instead (extras joblib, slurm)
    """
    # here, so that help and completion work without Hydra and do not wait for it
    from multilab.experiments.train import train as run

    jobs = run(_overrides(settings, multirun, cfg), fresh)
    if jobs.sweep and jobs.results:
        from multilab.reports.tables.results import print_sweep

        print_sweep([(job.settings["conventions"], job.cells) for job in jobs.results], jobs.results[0].metrics)
    jobs.raise_failure()
    return 0


@click.command()
@_with_settings
def tune(settings: tuple[str, ...], multirun: bool, cfg: str | None) -> int:
    """Tune the hyperparameters of a method on a dataset.

    Optuna searches on all rows of the dataset.

    \b
    multilab tune dataset=emotions method=mlknn                      20 trials
    multilab tune dataset=emotions method=mlknn tune.n_trials=50     continues from the finished trials to 50
    multilab tune dataset=emotions method=mlknn tune.timeout=600     no new trial starts after 10 minutes
    multilab tune dataset=emotions method=mlknn method.scale=minmax  with other fixed arguments
    multilab tune -m dataset=emotions,scene method=mlknn,mlkelm      several searches, one after another

    Trial 0 uses the method's own values. The command prints the changed arguments, the best value and the default one,
    and the command that trains with them. The search space is `search:` in the YAML of the method (`multilab methods
    show NAME`).

    \b
    Settings (name=value, with defaults):
      dataset=NAME            a name of `multilab datasets list`, or a data file
      method=NAME             a name of `multilab methods list`
      method.ARGUMENT=VALUE   a fixed argument of the method
      tune.n_trials=20        the number of finished trials; only the missing ones are run
      tune.metric=NAME        what is optimised (ranking_loss); its direction is known
      tune.folds=3            inner stratified folds; tune.order=1: of labels, 2: of pairs of labels
      tune.sampler=TPESampler or RandomSampler, QMCSampler (quasi-random: covers the space evenly), GridSampler (all
                              choices)
      tune.timeout=SECONDS    no new trial starts after that; at least one is finished
      tune.pruner=NopPruner   MedianPruner stops a trial that is worse than the median of earlier ones after an
                              inner fold
      tune.storage=URL        Optuna storage such as sqlite:///trials.db; default: a journal in the store of cells
      seed=0                  the root of all seeds
      publish=true            show the search in the MLflow experiment "tuning"
      engine=local            engine=dask engine.address=tls://HOST:8786: searches at the same time on a Dask cluster

    To tune inside every training set of a cross-validation instead: multilab train tune.n_trials=20 ...
    """
    from multilab.experiments.tune import tune as run

    return run(_overrides(settings, multirun, cfg))
