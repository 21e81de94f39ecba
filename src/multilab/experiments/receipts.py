"""Keys of the stages of a study and receipts of their work: if they change, DVC runs the stage again.

``.plan/<study>/<stage>.keys`` holds what identifies the work of a stage, one line per item; a stage runs again when a
line changes. ``results/<study>/<stage>.json`` says that the work is done. Neither holds a computed number, whose last
digits differ between processors.
"""

import json
from pathlib import Path

from multilab import datasets
from multilab.cells.errors import ExperimentError
from multilab.claims.paper import find
from multilab.core import (
    changed_files,
    files_digest,
    formulas_digest,
    json_digest,
    report_dir,
    results_dir,
    write_atomically,
)
from multilab.experiments.plan import Plan
from multilab.experiments.study import Study
from multilab.models.mlflow_store import is_destination
from multilab.statistics.result_files import KEY_DIGITS, read_keys

STAGES = ("preprocess", "base_scores", "train", "analyses", "evaluate", "stats", "publish")
"""The stages of a pipeline after ``keys``, in their order."""
PAGE = "index.html"

_PACKAGE = Path(__file__).parents[1]


def stage_keys(plan: Plan) -> dict[str, list[str]]:
    """Return, per stage of a study, the lines that identify its work.

    Raises
    ------
    ExperimentError
        If the study has no datasets or no methods, or the data of one cannot be obtained.
    """
    study = plan.study
    _check_datasets(study)
    cells = {method: [cell.key for cell in cells] for method, cells in plan.by_method.items()}
    units: dict[str, list[str]] = {}
    for unit in plan.units:
        units.setdefault(unit.analysis, []).append(unit.key)
    keys = {
        "preprocess": [
            _dataset_line(name, [ref.digest for ref in plan.refs if ref.dataset == name]) for name in study.datasets
        ],
        "base_scores": [cell.key for cell in plan.base_scores],
        "train": [f"{method} {json_digest(sorted(keys))}" for method, keys in cells.items()],
        "analyses": [f"{analysis} {json_digest(keys)}" for analysis, keys in units.items()],
    }
    paper = find(study.paper) if study.paper else None
    published = [json_digest(paper.texts("names.yaml", "published.csv"))] if paper else []
    keys["evaluate"] = [json_digest(keys["train"]), evaluation_digest(), *published]
    description = [repr(study), *(repr(study.method(name)) for name in study.all_methods)]
    reported = [report_digest(), *([paper.report_digest] if paper else [])]
    keys["stats"] = [json_digest(keys["preprocess"]), json_digest(description), *reported]
    keys["publish"] = [json_digest(keys["evaluate"]), json_digest(keys["stats"])]
    return keys


def evaluation_digest() -> str:
    """Return the digest of the metrics and of the code that applies them to stored cells."""
    tables = ("cells/cell_metrics.py", "experiments/evaluate.py", "experiments/label_counts.py")
    return formulas_digest("claims/published.py", *tables)


def _check_datasets(study: Study) -> None:
    if not study.datasets or not study.methods:
        raise ExperimentError(f"conf/study/{study.name}.yaml: a study needs at least one dataset and one method")
    for card in map(datasets.card, study.datasets):
        if not card.available:
            raise ExperimentError(f"conf/study/{study.name}.yaml: no data of {card.name}: {card.reason}")


def _dataset_line(name: str, splits: list[str]) -> str:
    return f"{name} {(datasets.prepared_meta(name) or {})['digest']} {json_digest(splits)}"


def report_digest() -> str:
    """Return the digest of the code that `write_report` calls, and of the templates of its pages."""
    of_experiments = (f"experiments/{name}.py" for name in ("comparisons", "dvc_files", "ledger"))
    code = files_digest("statistics", "reports", "claims", *of_experiments)
    folders = (_PACKAGE / name / "templates" for name in ("reports", "experiments"))
    texts = sorted(file for folder in folders for file in folder.iterdir())
    return json_digest([code, {file.name: file.read_text("utf-8") for file in texts}])


def write_keys(plan: Plan) -> dict[str, list[str]]:
    """Write the keys of the stages of a study to ``.plan/<study>/`` and return them."""
    keys = stage_keys(plan)
    for stage, lines in keys.items():
        path, text = _keys(plan.study, stage), "\n".join(lines) + "\n"
        if not path.is_file() or path.read_text("utf-8") != text:
            write_atomically(path, text)
    return keys


def write_receipt(study: Study, stage: str) -> None:
    """Write the receipt that a stage did the work of its keys; without keys (a stage run manually), do nothing."""
    if _keys(study, stage).is_file():
        content = {"study": study.name, "stage": stage, "keys": _keys(study, stage).read_text("utf-8").splitlines()}
        write_atomically(_receipt(study, stage), json.dumps(content, indent=1) + "\n")


def drop_stale_receipts(study: Study) -> None:
    """Remove the receipts of stages whose files are missing or were edited, so that DVC runs those stages again.

    Checks the results in the report folder, its page, and, for ``publish``, the MLflow store.
    """
    # DVC tracks receipts only: it does not see that a table was edited (decision 17).
    edited = bool(changed_files(report_dir(study.name)))
    stale = {"analyses": edited, "evaluate": edited, "stats": edited or not has_page(study)}
    for stage in filter(stale.get, stale):
        _receipt(study, stage).unlink(missing_ok=True)
    if not is_destination(published_to(study)):
        _receipt(study, "publish").unlink(missing_ok=True)


def adopt_results(plan: Plan) -> None:
    """Write the receipts of all stages of a study whose results are in its report folder; no cell is run.

    Raises
    ------
    ExperimentError
        If a file of the report was edited, or if the cells of the committed scores have other keys than the current
        settings and code give.

    Notes
    -----
    The receipt of ``publish`` lasts until the next stage ``keys``, which removes it where the MLflow store is absent.
    """
    study = plan.study
    if edited := changed_files(report_dir(study.name)):
        raise ExperimentError(f"{report_dir(study.name) / edited[0]} is missing or was edited; run the study")
    other = len({cell.key[:KEY_DIGITS] for cell in plan.cells} ^ published_keys(study))
    if other:
        path = report_dir(study.name) / "keys.csv"
        raise ExperimentError(f"{path}: {other} keys are not those of the current settings and code; run the study")
    for stage in STAGES:
        write_receipt(study, stage)


def published_keys(study: Study) -> set[str]:
    """Return the first digits of the keys of the cells of a study whose scores or failures are in its report."""
    return set(read_keys(report_dir(study.name))["key"])


def has_page(study: Study) -> bool:
    """Return whether the page of a study exists; the arena's page is not checked."""
    return study.page == "arena" or (report_dir(study.name) / PAGE).is_file()


def published_to(study: Study) -> Path:
    """Return the file that names the MLflow store of a study's last publication; not tracked by DVC."""
    return results_dir(study.name) / "published-to.json"


def _keys(study: Study, stage: str) -> Path:
    return Path(".plan") / study.name / f"{stage}.keys"


def _receipt(study: Study, stage: str) -> Path:
    return results_dir(study.name) / f"{stage}.json"
