"""Keys of the stages of a study: one line per item of work, so that a stage runs again when one of its lines changes.

No heavy import: the stage ``keys`` computes them on every ``dvc repro``.
"""

from pathlib import Path

from multilab import datasets
from multilab.claims.paper import analyses_of, find
from multilab.core import code_digest, json_digest
from multilab.experiments.analyses import units_of
from multilab.experiments.cells import base_score_cells, study_cells, study_split_refs
from multilab.experiments.errors import ExperimentError
from multilab.experiments.study import Study

STAGES = ("preprocess", "base_scores", "train", "analyses", "evaluate", "stats", "publish")
"""The stages of a pipeline after ``keys``, in their order."""

_PACKAGE = Path(__file__).parents[1]


def stage_keys(study: Study) -> dict[str, list[str]]:
    """Return, per stage of a study, the lines that identify its work.

    Raises
    ------
    ExperimentError
        If the study has no datasets or no methods, or the data of one cannot be obtained.
    """
    _check_datasets(study)
    refs = study_split_refs(study)
    cells = {method: [cell.key for cell in study_cells(study, method, refs)] for method in study.all_methods}
    units: dict[str, list[str]] = {}
    for unit in units_of(study, analyses_of(study.paper)):
        units.setdefault(unit.analysis, []).append(unit.key)
    keys = {
        "preprocess": [
            _dataset_line(name, [ref.digest for ref in refs if ref.dataset == name]) for name in study.datasets
        ],
        "base_scores": [cell.key for cell in base_score_cells(study, refs)],
        "train": [f"{method} {json_digest(sorted(keys))}" for method, keys in cells.items()],
        "analyses": [f"{analysis} {json_digest(keys)}" for analysis, keys in units.items()],
    }
    paper = find(study.paper) if study.paper else None
    published = [json_digest(paper.texts("names.yaml", "published.csv"))] if paper else []
    keys["evaluate"] = [json_digest(keys["train"]), evaluation_digest(), *published]
    if study.label_counts:
        keys["evaluate"].append(code_digest("multilab.experiments.label_counts", "multilab.experiments.label_counts"))
    description = [repr(study), *(repr(study.method(name)) for name in study.all_methods)]
    reported = [report_digest(), *([paper.report_digest] if paper else [])]
    keys["stats"] = [json_digest(keys["preprocess"]), json_digest(description), *reported]
    keys["publish"] = [json_digest(keys["evaluate"]), json_digest(keys["stats"])]
    return keys


def evaluation_digest() -> str:
    """Return the digest of the metrics and of the code that applies them to stored cells."""
    claims = ("multilab.claims.published",)
    within = ("multilab.experiments.evaluate", "multilab.experiments.cell_metrics", "multilab.metrics", *claims)
    return json_digest([code_digest(name, within) for name in ("multilab.experiments.evaluate", "multilab.metrics")])


def _check_datasets(study: Study) -> None:
    if not study.datasets or not study.methods:
        raise ExperimentError(f"conf/study/{study.name}.yaml: a study needs at least one dataset and one method")
    for card in map(datasets.card, study.datasets):
        if not card.available:
            raise ExperimentError(f"conf/study/{study.name}.yaml: no data of {card.name}: {card.reason}")


def _dataset_line(name: str, splits: list[str]) -> str:
    return f"{name} {(datasets.prepared_meta(name) or {})['digest']} {json_digest(splits)}"


def report_digest() -> str:
    """Return the digest of what `write_report` calls, and of the templates of its pages."""
    of_experiments = (f"experiments.{name}" for name in ("comparisons", "dvc_files", "ledger"))
    within = [f"multilab.{name}" for name in ("statistics", "reports", "claims", *of_experiments)]
    code = code_digest("multilab.reports.study", within)
    folders = (_PACKAGE / name / "templates" for name in ("reports", "experiments"))
    texts = sorted(file for folder in folders for file in folder.iterdir())
    return json_digest([code, {file.name: file.read_text() for file in texts}])
