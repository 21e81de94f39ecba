"""Files of a study that DVC reads: its pipeline, that of the datasets, and those of ``metrics:`` and ``plots:``.

Stages depend on prepared data, on the YAML files that they read, as ``params:``, and on folders of source code; in a
repository of a user on ``requirements.txt``, which pins multilab, and on the user's own code. Their outs are packs of
results and tables. ``headline.json`` has few numbers, because `dvc metrics show` has a column for each number of all
studies. ``headline.csv``, ``ranks.csv`` and ``folds.csv`` are the data of the plots, best method first, drawn by the
templates in ``.dvc/plots``.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab import datasets
from multilab.cells.cell import base_methods
from multilab.cells.conf import read_settings, settings_path
from multilab.cells.environment import installed_version
from multilab.cells.errors import ExperimentError
from multilab.core import conf_dir, report_dir, results_dir, write_atomically
from multilab.core.shell import command
from multilab.experiments.analyses import table_stem
from multilab.experiments.study import Study
from multilab.printed import analyses_of
from multilab.statistics.result_files import SCORES, statistics_file, table_file

if TYPE_CHECKING:  # the stages import this module
    import pandas as pd

DEFAULT_STUDY = "quick"
"""The study of the ``dvc.yaml`` at the top."""

METRICS_FILE = "headline.json"
PAGE = "index.html"
PLOT_TABLES = ("headline.csv", "ranks.csv", "folds.csv")
DATA_PIPELINE = Path("data/dvc.yaml")

_TEMPLATES = Path(__file__).parent / "templates"
_PLOT_TEMPLATES = ("by_method.json", "by_split.json")
_SOURCES = Path("src/multilab")
_PREPARING = ("core", "datasets")
_COMPUTING = (*_PREPARING, "cells", "decision", "experiments", "methods", "metrics", "model_selection")
_REQUIREMENTS = Path("requirements.txt")
_PERSISTENT = {"persist": True}  # DVC removes other outs before it runs their stage
_UNSHARED = {"cache": False, "push": False}


def pipeline_path(study: str) -> Path:
    """Return the path of a study's pipeline file: ``reports/<study>/dvc.yaml``; ``dvc.yaml`` for the default study."""
    return Path("dvc.yaml") if study == DEFAULT_STUDY else Path("reports") / study / "dvc.yaml"


def run_command(study: str) -> str:
    """Return the command that runs a study in the current folder: its DVC pipeline, or all its stages without DVC."""
    path, here = pipeline_path(study), Path.cwd()
    if not path.is_file() or not any((folder / ".dvc").is_dir() for folder in (here, *here.parents)):
        return f"{command('multilab')} study run --study {study}"
    return f"{command('dvc')} repro{'' if study == DEFAULT_STUDY else f' {path.as_posix()}'}"


def settings_text(study: str) -> str:
    """Return the settings of a new study, to be edited."""
    return _filled("study.yaml.j2", study=study)


@dataclass(frozen=True)
class Stage:
    """A stage of a study's pipeline."""

    name: str
    deps: Sequence[str]
    params: Sequence[str]
    outs: Sequence[tuple[str, Mapping[str, bool]]]


def pack_paths(study: Study, stage: str) -> dict[bool, Path]:
    """Return the files with the results of a stage, by whether they are of private datasets."""
    folder, private = results_dir(study.name), any(datasets.card(name).private for name in study.datasets)
    paths = {False: folder / f"{stage}.zip"}
    return paths | ({True: folder / f"{stage}-private.zip"} if private else {})


def stages_of(study: Study) -> list[Stage]:
    """Return the stages of a study: those that compute write packs, the others tables."""
    prepared = [f"data/prepared/{name}" for name in study.datasets]
    described, methods = _study_files(study), _method_files(study)
    folders = {settings_path("protocol", "any").parent, *(Path(path).parent for path in methods)}
    settings = sorted(_files(*folders))
    analysed = analyses_of(study.paper)
    stages, packs = [], list[str]()
    for name in ("base_scores", "train", *(["analyses"] if analysed else [])):
        made = pack_paths(study, name)
        outs = [(path.as_posix(), _PERSISTENT | (_UNSHARED if private else {})) for private, path in made.items()]
        papers = ["papers", "printed"] if name == "analyses" else []
        deps = [*prepared, *packs, *settings, *_own_code(study), *package_code(*_COMPUTING, *papers)]
        tables = [table_file(table_stem(analysis.module)) for analysis in analysed] if papers else []
        params = [*described, *(methods if name == "train" else [])]
        stages.append(Stage(name, deps, params, [*outs, *_tables(study, dict.fromkeys(tables))]))
        packs += [path for path, _ in outs]
    trained = [path.as_posix() for path in pack_paths(study, "train").values()]
    papers = ["papers", "printed"] if study.paper else []
    code = package_code("cells", "core", "experiments", "metrics", *papers)
    stages.append(Stage("evaluate", [*prepared, *trained, *code], described, _tables(study, evaluated_tables(study))))
    scores = [path for stage in stages[2:] for path, _ in stage.outs]
    code = package_code("core", "experiments", "statistics")
    written = _tables(study, described_files(study))
    stages.append(Stage("stats", [*trained, *scores, *settings, *code], described, written))
    shown = [*trained, *scores, *(path for path, _ in written)]
    stages.append(Stage("publish", [*shown, *package_code("experiments", "reports")], (), ()))
    return stages


def evaluated_tables(study: Study) -> list[str]:
    """Return the tables that the stage ``evaluate`` of a study always writes."""
    tables = [SCORES, "keys.csv"]
    tables += ["tuned.csv"] if any(study.tune_of(name) for name in study.all_methods) else []
    tables += ["sampling.csv"] if study.paper else []
    tables += ["labels.csv"] if study.label_counts else []
    return tables + (["unfinished.csv"] if study.limits else [])


def described_files(study: Study) -> list[str]:
    """Return what the stage ``stats`` of a study writes."""
    files = [METRICS_FILE, *PLOT_TABLES, "metrics.json", "study.json", "datasets.json"]
    if study.page == "arena":
        return files
    compared = [statistics_file(), *(statistics_file(n) for n, v in study.variants.items() if len(v.methods) > 1)]
    learned = any(study.method(name).save_attributes for name in study.methods)
    return [*files, *compared, *(["figures"] if learned else [])]


def _tables(study: Study, names: Iterable[str]) -> list[tuple[str, dict[str, bool]]]:
    """Return tables as outs: git has those of a study, of the default study only the small ones."""
    folder, small = report_dir(study.name).as_posix(), ("metrics.json", METRICS_FILE, *PLOT_TABLES)
    in_git = {name for name in names if study.name != DEFAULT_STUDY or name in small}
    return [(f"{folder}/{name}", _PERSISTENT | ({"cache": False} if name in in_git else {})) for name in names]


def _study_files(study: Study) -> list[str]:
    """Return the YAML files of a study and of those that it is like."""
    names = [study.name]
    while other := read_settings("study", names[-1]).get("like"):
        names.append(str(other))
    return _files(*(settings_path("study", name) for name in names))


def _method_files(study: Study) -> list[str]:
    """Return the YAML files of the methods of a study, and of those whose scores they read."""
    columns = [study.method(name) for name in study.all_methods]
    bases = [base.name for column in columns for base in base_methods(column)]
    names = dict.fromkeys([*(study.base(column) for column in study.all_methods), *bases])
    return _files(*(settings_path("method", name) for name in names))


def _own_code(study: Study) -> list[str]:
    """Return the user's own modules that methods of a study name."""
    modules: set[str] = set()
    for column in study.all_methods:
        with contextlib.suppress(ExperimentError):  # another library's that is not installed here
            modules |= study.method(column).outside.modules
    return sorted(_files(*(Path(getattr(sys.modules.get(name), "__file__", None) or "") for name in modules)))


def package_code(*packages: str) -> list[str]:
    """Return what computes as dependencies: folders of the package in a checkout, else the pinned version."""
    if _SOURCES.is_dir():
        return sorted({(_SOURCES / name).as_posix() for name in packages})
    return [_REQUIREMENTS.as_posix()]


def _files(*paths: Path) -> list[str]:
    """Return those of some paths that are in the current folder, relative to it."""
    here = Path.cwd().resolve()
    inside = [path.resolve() for path in paths if path.exists() and path.resolve() != here]
    return [path.relative_to(here).as_posix() for path in inside if path.is_relative_to(here)]


def pin_version() -> Path | None:
    """Pin the installed version in ``requirements.txt``, outside a checkout; return the file if it was changed."""
    if _SOURCES.is_dir() or _pinned():
        return None
    text = _REQUIREMENTS.read_text("utf-8") if _REQUIREMENTS.is_file() else ""
    write_atomically(_REQUIREMENTS, f"{text.rstrip()}\nmultilab=={installed_version('multilab')}\n".lstrip())
    return _REQUIREMENTS


def check_pinned_version() -> None:
    """Refuse to run a stage with another version than the one that DVC compares.

    Raises
    ------
    ExperimentError
        If ``requirements.txt`` pins another version of multilab than is installed.
    """
    pinned, here = None if _SOURCES.is_dir() else _pinned(), installed_version("multilab")
    if pinned and pinned != here:
        raise ExperimentError(
            f"{_REQUIREMENTS} pins multilab {pinned}, {here} is installed: install the pinned version, or write "
            f"multilab=={here} there, and `dvc status` shows what would run"
        )


def _pinned() -> str | None:
    """Return the version of multilab that ``requirements.txt`` pins."""
    lines = _REQUIREMENTS.read_text("utf-8").splitlines() if _REQUIREMENTS.is_file() else []
    pins = (line.partition("#")[0].replace(" ", "").partition("==") for line in lines)
    return next((version for name, _, version in pins if name.partition("[")[0] == "multilab" and version), None)


def pipeline_text(study: Study) -> str:
    """Return the content of the pipeline file of a study; plots added to an existing file are kept."""
    path = pipeline_path(study.name)
    top = path.parent == Path()
    text = _filled(
        "dvc.yaml.j2",
        study=study.name,
        top=top,
        target="" if top else f" {path.as_posix()}",
        stages=stages_of(study),
        headline=study.headline,
        folder=f"reports/{study.name}/" if top else "",
    )
    # plots are the end of the file, so that what follows the template's last line was added
    *_, last = text.splitlines(keepends=True)
    added = path.read_text("utf-8").partition(last)[2] if path.is_file() else ""
    return text + added


def data_pipeline_text(study: Study) -> str:
    """Return the pipeline of the datasets: those of a study, of other pipelines, and those in its lock."""
    lock = DATA_PIPELINE.with_suffix(".lock")
    others = [path for path in (Path("dvc.yaml"), *Path("reports").glob("*/dvc.yaml")) if path.is_file()]
    needed = {name for path in others for name in re.findall(r"data/prepared/([\w.-]+)", path.read_text("utf-8"))}
    locked = re.findall(r"^  preprocess[^@\n]*@(\S+):$", lock.read_text("utf-8") if lock.is_file() else "", re.M)
    names = {*study.datasets, *needed, *locked} & {*datasets.cards()}
    cards = [card for card in map(datasets.card, sorted(names)) if card.available]
    groups: dict[str, dict[str, Any]] = {}

    def add(stage: str, name: str, command: str, deps: Sequence[str], out: str, private: bool = False) -> None:
        group = {"stage": stage, "command": command, "deps": deps, "out": out, "private": private, "names": []}
        groups.setdefault(stage, group)["names"].append(name)

    for card in cards:
        described = [path.replace(f"{card.name}.yaml", "${item}.yaml") for path in _files(card.location)]
        addressed, code = any(file.addressed for file in card.files), package_code(*_PREPARING)
        kind = "" if addressed else "_generated"
        if card.location.parent != (conf_dir() / "dataset").resolve():  # one's own: it depends on other files
            kind = f"_{card.name.replace('.', '-')}"
        kind, files = f"{kind}{'_private' if card.private else ''}", ["data/raw/${item}"]
        if addressed and card.private:
            files = []  # they stay where they are
        elif addressed:
            add(f"fetch{kind}", card.name, "fetch --copy", described or code, files[0])
        else:
            files = _files(*(card.location.parent / file.path for file in card.files))
        out = "data/prepared/${item}"
        add(f"preprocess{kind}", card.name, "prepare", [*described, *files, *code], out, card.private)
    return _filled("data.yaml.j2", groups=groups.values())


def write_pipeline(study: Study) -> list[Path]:
    """Write the pipeline of a study, that of its datasets, and the templates of plots; return the pipelines."""
    pipeline = pipeline_path(study.name)
    files: dict[Path, str] = {}
    if Path(".dvc").is_dir():
        files = {Path(".dvc/plots") / name: (_TEMPLATES / name).read_text("utf-8") for name in _PLOT_TEMPLATES}
    for path, text in {**files, pipeline: pipeline_text(study)}.items():
        _write(path, text)
    _write(DATA_PIPELINE, data_pipeline_text(study))  # after the study's, which names its datasets of today
    return [pipeline, DATA_PIPELINE]


def _write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text("utf-8") != text:
        write_atomically(path, text)


def _filled(template: str, **values: Any) -> str:
    from jinja2 import Environment, FileSystemLoader  # stages write no template

    templates = Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True)
    return templates.get_template(template).render(**values)


def write_plots(study: Study, scores: pd.DataFrame, means: Mapping[str, float], ranks: Mapping[str, Any]) -> None:
    """Write the metrics and the data of the plots of a study to its report folder.

    Parameters
    ----------
    study : Study
    scores : DataFrame
        Rows (dataset, split, method, metric, value).
    means : mapping
        Mean of the headline metric by method.
    ranks : mapping
        Average ranks by method and metric; those of the study's own methods are shown.
    """
    import pandas as pd

    from multilab.metrics import METRICS
    from multilab.statistics.result_files import write_table

    folder, metric = report_dir(study.name), study.headline
    sign = -1 if METRICS[metric].direction == "max" else 1
    best_first = sorted(means, key=lambda method: (sign * means[method], method))
    own = [method for method in best_first if method in study.methods]
    summary: dict[str, Any] = {"metric": metric, "methods": len(own)}
    if own:
        mean = round(sum(means[method] for method in own) / len(own), 6)
        summary |= {"best": own[0], "value": means[own[0]], "mean": mean}
    write_atomically(folder / METRICS_FILE, json.dumps(summary, indent=1) + "\n")
    headline = pd.DataFrame({"method": best_first, "mean": [means[method] for method in best_first]})
    write_table(folder / "headline.csv", headline)
    ranked = [(method, round(ranks[method][metric], 4)) for method in study.methods if metric in ranks[method]]
    ranked.sort(key=lambda row: (row[1], row[0]))
    write_table(folder / "ranks.csv", pd.DataFrame(ranked, columns=["method", "rank"]))
    rows = scores[scores["metric"] == metric].dropna(subset="value")
    values = rows["value"].round(10).round(4)  # as in the means, rounding errors decide no digit
    rows = rows[["dataset", "split", "method"]].assign(value=values)
    place = {method: number for number, method in enumerate(best_first)}
    order = rows["method"].map(place).fillna(len(place)).sort_values(kind="stable").index
    write_table(folder / "folds.csv", rows.loc[order].sort_values(["dataset", "split"], kind="stable"))
