"""Files of a study that DVC reads: its pipeline file, and those of ``params:``, ``metrics:`` and ``plots:``.

The pipeline has the same stages for every study. ``params.json`` holds what the study and its methods set.
``headline.json`` has few numbers, because `dvc metrics show` has a column for each number of all studies.
``headline.csv``, ``ranks.csv`` and ``folds.csv`` are the data of the plots, best method first, drawn by the templates
in ``.dvc/plots``.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab.cells.conf import settings_path
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method
from multilab.core import home_dir, report_dir, results_dir, write_atomically
from multilab.core.digests import sha256_digest
from multilab.core.shell import command, short_path
from multilab.core.text import first_few
from multilab.experiments.study import Study

if TYPE_CHECKING:  # the stage `keys` imports this module
    import pandas as pd

DEFAULT_STUDY = "quick"
"""The study of the ``dvc.yaml`` at the top."""

_BEFORE: dict[str, tuple[str, ...]] = {
    "preprocess": (),
    "base_scores": ("preprocess",),
    "train": ("base_scores",),
    "analyses": ("base_scores",),
    "evaluate": ("train",),
    "stats": ("evaluate", "analyses"),
    "publish": ("evaluate", "stats"),
}
"""The stages of a pipeline after ``keys``, and the stages that each begins after."""

METRICS_FILE = "headline.json"
PLOT_TABLES = ("headline.csv", "ranks.csv", "folds.csv")

_TEMPLATES = Path(__file__).parent / "templates"
_PLOT_TEMPLATES = ("by_method.json", "by_split.json")
_NOT_SHOWN = (
    *("name", "title", "description", "notes", "kind", "paper", "metrics", "label_counts", "gate_cases"),
    *("methods", "variants"),  # they are the columns
)


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


def pipeline_text(study: Study) -> str:
    """Return the content of the pipeline file of a study; plots added to an existing file are kept."""
    path = pipeline_path(study.name)
    top = path.parent == Path()
    text = _filled(
        "dvc.yaml.j2",
        study=study.name,
        top=top,
        target="" if top else f" {path.as_posix()}",
        stages=_BEFORE,
        headline=study.headline,
        folder=f"reports/{study.name}/" if top else "",
    )
    # plots are the end of the file, so that what follows the template's last line was added
    *_, last = text.splitlines(keepends=True)
    added = path.read_text("utf-8").partition(last)[2] if path.is_file() else ""
    return text + added


def _filled(template: str, **values: Any) -> str:
    from jinja2 import Environment, FileSystemLoader  # the stage `keys` writes no template

    templates = Environment(loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True)
    return templates.get_template(template).render(**values)


def write_parameters(study: Study) -> None:
    """Write ``params.json`` of a study and, in a repository of DVC, the templates of its plots.

    Raises
    ------
    ExperimentError
        If somebody changed ``params.json`` itself, as `dvc exp run -S reports/quick/params.json:mlknn.k=4` does.
    """
    path, text = report_dir(study.name) / "params.json", json.dumps(study_parameters(study), indent=1) + "\n"
    notes = home_dir() / results_dir(study.name) / "params-written"  # a digest a line, of each text written here
    written = notes.read_text().split() if notes.is_file() else []
    _refuse_changed(path, text, written, study)
    if (digest := sha256_digest(text.encode())) not in written:
        write_atomically(notes, "\n".join([*written, digest]) + "\n")
    files = {path: text}
    if Path(".dvc").is_dir():
        files |= {Path(".dvc/plots") / name: (_TEMPLATES / name).read_text("utf-8") for name in _PLOT_TEMPLATES}
    for path, text in files.items():
        if not path.is_file() or path.read_text("utf-8") != text:
            write_atomically(path, text)


def _refuse_changed(path: Path, text: str, written: Sequence[str], study: Study) -> None:
    """Raise if the settings in a ``params.json`` are not those of ``text``, and were not written here or committed."""
    found = path.read_text("utf-8") if path.is_file() else text
    try:
        there, here = json.loads(found), json.loads(text)
    except ValueError:  # of a merge with a conflict
        return
    changed = [column for column in {**there, **here} if there.get(column) != here.get(column)]
    if not changed:
        return
    ask = ["git", "show", f"HEAD:./{path.as_posix()}"]
    committed = subprocess.run(ask, capture_output=True, check=False).stdout if shutil.which("git") else b""
    originals = [*written, *([sha256_digest(committed)] if committed else [])]
    if originals and sha256_digest(found.encode()) not in originals:
        own = [column for column in changed if column in study.methods]
        source = short_path(settings_path("method", own[0]) if own else settings_path("study", study.name))
        raise ExperimentError(
            f"{path} was changed ({first_few(changed, 5)}), but it is written from the settings: remove it and change "
            f"{source} instead, as `dvc exp run -S {source}:NAME=VALUE` does"
        )


def study_parameters(study: Study) -> dict[str, Any]:
    """Return the settings of a study, under ``study``, and the arguments of the method of each column.

    Omits defaults, texts and search spaces, and everything that a variant's column shares with its method. Blocks of
    settings for some data sets are listed under ``study``.
    """
    own = {
        field.name: getattr(study, field.name)
        for field in dataclasses.fields(study)
        if field.name not in _NOT_SHOWN and getattr(study, field.name) != _default(field)
    }
    blocks = [*study.settings, *(block for variant in study.variants.values() for block in variant.settings)]
    own["settings"] = [block.to_dict() for block in blocks if block.datasets is not None]
    if not own["settings"]:
        del own["settings"]
    columns = {column: _column(study, column) for column in study.all_methods}
    return _plain({"study": own} | {column: settings for column, settings in columns.items() if settings})


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


def _column(study: Study, column: str) -> dict[str, Any]:
    """Return the settings of a column: those of its method, or of a variant those that differ from it."""
    settings, variant = _settings(study.method(column)), study.variant_of(column)
    if variant is None:
        return settings
    ordinary = _settings(study.method(study.base(column)))
    changed = {name: value for name, value in settings.items() if name not in ordinary or ordinary[name] != value}
    return changed | ({"tune": variant.tune.identity()} if variant.tune else {})


def _settings(method: Method) -> dict[str, Any]:
    """Return the arguments of a method and how its input is made."""
    inputs = {"base_scores": method.base_scores, "inner_cv": method.inner_cv} if method.base_scores else {}
    return {**method.params, "preprocessing": method.preprocessing, **inputs}


def _plain(settings: Any) -> Any:
    """Return settings as JSON holds them."""
    return json.loads(json.dumps(settings, default=dataclasses.asdict))


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
