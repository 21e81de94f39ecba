"""Settings of `train` and `tune` composed and checked with Hydra: overrides, sweeps, launchers.

It needs two private modules of Hydra: only there can the source of settings be replaced that Hydra reads folders by.

Dataset cards are data: Hydra neither finds nor composes them. ``dataset`` is the name of a card, checked against the
catalogue before Hydra sees it. Everything else is checked when composed, before any cell is run.
"""

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import hydra
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, QuotedString
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from multilab import datasets
from multilab.cells.arguments import check_method, check_metrics
from multilab.cells.conf import named_file, other_names, plain, settings_path
from multilab.cells.engines import Engine
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method
from multilab.cells.settings import ObservedShare, Tuning
from multilab.core import MultilabError, conf_dir, experiment_dir, store_dir
from multilab.core.messages import closest, pip_install, printable, unknown_name
from multilab.core.shell import command
from multilab.datasets import cards
from multilab.datasets.catalogue import files_dir
from multilab.model_selection import normalise_protocol

_CARDS = "dataset"
_LAUNCHERS = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit"}


class FileConfigSource(file_config_source.FileConfigSource):
    """Hydra's folder of YAML files without the folder of dataset cards, which Hydra must not compose.

    Entrants are methods, so that their folder is no group of its own.

    It has the name of the class it replaces: in the processes of a launcher Hydra compares the two by name.
    """

    def is_group(self, config_path: str) -> bool:
        """Tell whether the path is a group of settings."""
        hidden = _is_card(config_path) or config_path.strip("/") == "entrant"
        return not hidden and super().is_group(config_path)

    def is_config(self, config_path: str) -> bool:
        """Tell whether the path is a file of settings."""
        return not _is_card(config_path) and (super().is_config(config_path) or _own(config_path) is not None)

    def load_config(self, config_path: str) -> ConfigResult:
        """Return the content of a settings file: of the package, of an arena entrant, or of the user."""
        path = _own(config_path)
        if path is None:
            return super().load_config(config_path)
        return FileConfigSource(self.provider, str(path.parent)).load_config(path.name)

    def list(self, config_path: str, results_filter: Any) -> list[str]:
        """Return the settings and groups of a group."""
        entries = super().list(config_path, results_filter)
        others = other_names(config_path.strip("/")) if config_path else []
        return sorted({*(e for e in entries if not _is_card(os.path.join(config_path, e))), *others})


def _own(config_path: str) -> Path | None:
    """Return the file of an entrant, or of the user's settings, for a path of settings."""
    group, _, name = config_path.strip("/").removesuffix(".yaml").rpartition("/")
    return settings_path(group, name) if group and name in other_names(group) else None


def _is_card(config_path: str) -> bool:
    """Tell whether a path of settings leads to the cards, also by a detour (``method/../dataset/x``) or in capitals."""
    parts = PurePosixPath(os.path.normpath(config_path or ".").replace(os.sep, "/").lower().lstrip("/")).parts
    return _CARDS in parts[:1] or (".." in parts and _CARDS in parts)


@dataclass(frozen=True)
class Jobs:
    """Outcome of Hydra's jobs: a single one, or those of a sweep.

    Attributes
    ----------
    results : list
        What the finished jobs returned.
    failures : list of (str, Exception)
        Of the failed jobs the overrides that set them apart, and the error.
    sweep : bool
        Whether they are the jobs of a sweep (``-m``).
    """

    results: list[Any]
    failures: list[tuple[str, Exception]]
    sweep: bool

    def raise_failure(self) -> None:
        """Raise the error of a failed job; in a sweep name all failed jobs."""
        if not self.failures:
            return
        (overrides, error), *others = self.failures
        if not self.sweep or not isinstance(error, MultilabError):
            raise error
        for other, reason in others:
            print(printable(f"failed: {other}: {reason}"), file=sys.stderr)
        total = len(self.results) + len(self.failures)
        failed = ExperimentError(f"{len(self.failures)} of {total} jobs of the sweep failed: {overrides}: {error}")
        failed.exit_code = error.exit_code
        raise failed from error


def run_jobs(task: Callable[[Any], Any], argv: Sequence[str], program: str) -> Jobs:
    """Let Hydra compose the settings and run ``task(cfg)`` for each job, in a sweep by its sweeper and launcher.

    Parameters
    ----------
    task : callable
        Called with the composed settings; begins with :func:`settings_of`, which checks them. A launcher may run it in
        another process, and brings what it returns back.
    argv : sequence of str
        The arguments of the command line.
    program : str
        The command, for the usage line.

    Raises
    ------
    MultilabError
        If the user has to fix something before any job runs. The message is one line.
    """
    Plugins.instance()  # registers Hydra's own sources, of which one is replaced
    SourcesRegistry.instance().types["file"] = FileConfigSource
    if experiment_dir() is not None:
        os.environ["MULTILAB_CELLS"] = str(store_dir())  # the folder of a sweep in conf/config.yaml starts from it
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us unchanged
    sweep = any(argument in ("-m", "--multirun", "hydra.mode=MULTIRUN") for argument in argv)
    # `hydra.main` reads its arguments from there.
    sys.argv = [program, *(_checked_argument(argument, sweep) for argument in argv)]
    ended: list[tuple[list[str], Any, Exception | None]] = []
    job = _Job(task)
    try:
        with _collected(ended), _lazy_help():
            main = hydra.main(config_path=str(conf_dir()), config_name="config", version_base="1.3")
            main(job if sweep else lambda cfg: ended.append(([], *job(cfg))))()
    except (HydraException, OmegaConfBaseException) as error:
        raise _one_line(error) from None
    # A failed job is named by the overrides that set it apart from the other jobs.
    shared = set.intersection(*(set(overrides) for overrides, *_ in ended)) if len(ended) > 1 else set()
    failures = [
        (" ".join(word.lstrip("+") for word in overrides if word not in shared), error)
        for overrides, _, error in ended
        if error is not None
    ]
    return Jobs([result for _, result, error in ended if error is None], failures, sweep)


def planned_jobs(plan: Callable[[Any], tuple[Engine, Any]], overrides: Sequence[str], program: str) -> list[Any]:
    """Return ``plan(cfg)`` of the jobs of a sweep that runs on another engine; empty in all other cases.

    A job whose settings are refused is left out: it is refused again, and named, when the sweep runs.

    Raises
    ------
    ExperimentError
        If a launcher of Hydra is named too.
    """
    engine_words = [word for word in overrides if re.match(r"\+*(engine|hydra/launcher)[=.]", word)]
    if os.environ.get("MULTILAB_ENGINE", "local") == "local" and not any("engine" in word for word in engine_words):
        return []
    if not any(word in ("-m", "--multirun") for word in overrides):
        return []
    launcher = next((word for word in engine_words if "launcher" in word), None)
    if launcher:
        raise ExperimentError(f"{launcher} and an engine exclude each other; leave one of them out")
    with TemporaryDirectory() as folder:
        # Only planned: no log, no folder that remains, and no launcher that would start processes.
        quiet = ["hydra/hydra_logging=none", "hydra/job_logging=none", f"hydra.sweep.dir={folder}"]
        jobs = run_jobs(plan, [*overrides, "hydra/launcher=basic", *quiet], program)
    return [job for job in jobs.results if not job[0].is_local]


class _Job:
    """A task whose error is part of its result: Hydra would print it in its own words and end the sweep."""

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self._task = task

    def __call__(self, cfg: Any) -> tuple[Any, Exception | None]:
        try:
            return self._task(cfg), None
        except Exception as error:
            return None, error


@contextlib.contextmanager
def _collected(ended: list[tuple[list[str], Any, Exception | None]]) -> Iterator[None]:
    """Check the jobs of a sweep before the first starts, and collect what they return, whatever its launcher.

    Hydra gives the results of jobs to its sweeper only, and `hydra.main` returns nothing.
    """
    instantiate = Plugins.instantiate_launcher

    def instantiate_launcher(self: Plugins, *arguments: Any, **named: Any) -> Any:
        launcher: Any = instantiate(self, *arguments, **named)
        launch = launcher.launch

        def checked_launch(job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Any:
            _check_jobs(launcher, job_overrides)
            del launcher.launch  # submitit sends the launcher itself to the jobs
            jobs = launch(job_overrides, initial_job_idx)
            launcher.launch = checked_launch
            ended.extend((list(job.overrides), *job.return_value) for job in jobs)
            return jobs

        launcher.launch = checked_launch
        return launcher

    Plugins.instantiate_launcher = instantiate_launcher  # type: ignore[method-assign]
    try:
        yield
    finally:
        Plugins.instantiate_launcher = instantiate  # type: ignore[method-assign]


@contextlib.contextmanager
def _lazy_help() -> Iterator[None]:
    """Let Hydra 1.3 make its parser on Python 3.14: a help text of it is no string before it is printed.

    There argparse reads each help text when an argument is added (Hydra issue 3121); older ones have no such check.
    """
    parser: Any = argparse.ArgumentParser
    check = getattr(parser, "_check_help", None)
    if check is None:
        yield
        return
    parser._check_help = lambda self, action: check(self, action) if isinstance(action.help, str) else None
    try:
        yield
    finally:
        parser._check_help = check


def _check_jobs(launcher: Any, job_overrides: Sequence[Sequence[str]]) -> None:
    """Check the settings of the jobs of a sweep; the datasets were checked with the command line."""
    distinct = {}
    for overrides in job_overrides:
        distinct[tuple(word for word in overrides if not word.startswith((f"{_CARDS}=", "seed=")))] = overrides
    for overrides in distinct.values():
        cfg = launcher.hydra_context.config_loader.load_sweep_config(launcher.config, list(overrides))
        check_method(check_settings(cfg, cfg.hydra.runtime.choices["method"]), bool(cfg.tune.n_trials))


def _checked_argument(argument: str, multirun: bool) -> str:
    """Return an argument of the command line as Hydra shall see it: datasets checked and globs expanded.

    Arguments of a method are forced in (``++``), because its YAML need not name all that its estimator has;
    :func:`check_settings` refuses those it has not.
    """
    name, equals, value = argument.partition("=")
    bare = name.lstrip("+")
    if not equals or name.startswith(("-", "~")):
        return argument
    if bare.startswith("method."):
        return f"++{argument.lstrip('+')}"
    if bare == "method" and value.endswith(".yaml"):
        return f"{name}={','.join(named_file('method', path) for path in value.split(','))}"
    if bare.partition("@")[0] != _CARDS:
        return argument
    if bare != _CARDS:
        raise ExperimentError(f"{argument}: write {_CARDS}=NAME; `{command('multilab')} datasets list` lists them")
    chosen = _chosen(argument.lstrip("+"))
    for dataset in chosen:
        check_dataset(dataset)
    if len(chosen) > 1 and not multirun:
        raise ExperimentError(f"{argument} names {len(chosen)} datasets; add -m to run all of them")
    return f"{_CARDS}={','.join(chosen)}"


def _chosen(argument: str) -> list[str]:
    """Return the datasets that ``dataset=...`` names: one, a list, or what a glob matches in the catalogue."""
    override = OverridesParser.create().parse_override(argument)
    value = override.value()
    if isinstance(value, Glob):
        matched = value.filter(cards())
        if not matched:
            raise ExperimentError(f"{argument} matches no dataset; there are: {', '.join(cards())}")
        return matched
    if not override.is_sweep_override():
        return [str(value)]
    if not hasattr(value, "list"):
        raise ExperimentError(f"{argument}: expected a name, names separated by commas, or glob(...)")
    return [item.text if isinstance(item, QuotedString) else str(item) for item in override.sweep_iterator()]


def check_dataset(name: str) -> None:
    """Refuse a dataset that has no valid card or is unavailable."""
    names = datasets.cards()
    if name not in names and not (files_dir() / f"{name}.yaml").is_file():
        raise ExperimentError(unknown_name("dataset", name, names, f"{command('multilab')} datasets list"))
    card = datasets.card(name)
    if not card.available:
        raise ExperimentError(f"dataset {name} is unavailable: {card.reason}")


def check_settings(cfg: Any, method: str) -> Method:
    """Return the method of composed settings; refuse settings that no run could use, before any work starts.

    Raises
    ------
    MultilabError
        If a setting is wrong. The message says in one line what is wrong, and which values exist.
    """
    check_dataset(str(cfg.dataset))
    _check_number("seed", cfg.seed, 0)
    ObservedShare.from_setting(plain(cfg.observed))
    if not isinstance(cfg.publish, bool):
        raise ExperimentError(f"publish must be true or false, not {cfg.publish!r}")
    tune = plain(cfg.tune)
    Tuning.from_mapping({**tune, "n_trials": tune["n_trials"] or 1})  # 0: not tuned
    check_metrics([*metric_names(cfg), cfg.tune.metric], cfg.conventions)
    normalise_protocol(plain(cfg.protocol))
    return Method.from_mapping(method, plain(cfg.method))


def _check_number(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ExperimentError(f"{name} must be a whole number, at least {low}, not {value!r}")


def metric_names(cfg: Any) -> list[str]:
    """Return the metrics to print; ``metrics=hamming_loss`` is a list of one."""
    names = [cfg.metrics] if isinstance(cfg.metrics, str) else list(cfg.metrics or ())
    if not names:
        raise ExperimentError("metrics is empty; name at least one, as in metrics=[hamming_loss,ranking_loss]")
    return names


def task_overrides() -> list[str]:
    """Return the overrides of this job, as on the command line."""
    return list(HydraConfig.get().overrides.task)


def settings_of(cfg: Any) -> dict[str, Any]:
    """Return the checked settings that identify an ad hoc run, as plain values."""
    method = HydraConfig.get().runtime.choices["method"]
    check_settings(cfg, method)
    # These have an entry of their own, or do not affect the numbers.
    left_out = (f"{_CARDS}=", "method=", "publish=", "metrics=", "tracking", "engine")
    changed = [argument.lstrip("+") for argument in task_overrides() if not argument.startswith(left_out)]
    return {
        "dataset": str(cfg.dataset),
        "method": method,
        "mapping": plain(cfg.method),
        "protocol": plain(cfg.protocol),
        "seed": cfg.seed,
        "observed": plain(cfg.observed),
        "tune": plain(cfg.tune) if cfg.tune.n_trials else None,
        "conventions": cfg.conventions,
        "publish": cfg.publish,
        "changed": sorted(changed),
    }


def cells_at_once(launcher: Any = None) -> int | None:
    """Return how many cells this job may run at once under its launcher, ``None`` for one per core.

    Launchers run several jobs at once. Those of submitit have a process started for them and the cores they request;
    joblib starts a job per core, in processes with threads, which are better not forked.
    """
    launcher = HydraConfig.get().launcher if launcher is None else launcher
    if launcher._target_.endswith(".BasicLauncher"):
        return None
    return launcher.get("cpus_per_task") or 1


def _one_line(error: Exception) -> ExperimentError:
    """Return what a user needs of an error of Hydra or OmegaConf."""
    program, message = command("multilab"), " ".join(str(error).split()).split(" Config search path:")[0]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        launcher = _LAUNCHERS.get(name)
        if group == "hydra/launcher" and launcher:
            return ExperimentError(f"{group}={name} is not installed: {pip_install(f'hydra-{launcher}-launcher')}")
        if group:
            listed = f"{program} methods list" if group == "method" else ""
            return ExperimentError(unknown_name(group, name, error.options or (), listed))
    key = re.search(r"Could not override '([^']+)'", message)
    settings = _known_settings()
    if key and key[1] not in settings:
        match = closest(key[1], settings)
        hint = f"; did you mean {match}?" if match else f"; there are: {', '.join(settings)}"
        return ExperimentError(f"no setting is called {key[1]!r}{hint} (`{program} train --cfg job` shows all values)")
    return ExperimentError(f"{message} (`{program} train --cfg job` shows all settings)")


def _known_settings() -> list[str]:
    """Return the names of the settings of a run: the keys of config.yaml, and its groups."""
    content = OmegaConf.load(conf_dir() / "config.yaml")
    groups = [str(key) for entry in content.defaults if OmegaConf.is_config(entry) for key in entry]
    names = [group for group in groups if " " not in group]
    for key, value in ((str(key), value) for key, value in content.items()):
        if key not in ("defaults", "hydra"):
            names += [f"{key}.{inner}" for inner in map(str, value)] if OmegaConf.is_dict(value) else [key]
    return names
