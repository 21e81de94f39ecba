"""Receipts of stages: what DVC tracks, the same on every processor.

``.plan/<study>/<stage>.keys`` holds what identifies the work of a stage, ``results/<study>/<stage>.json`` that it is
done. Neither holds a computed number, whose last digits differ between processors.
"""

import json
from pathlib import Path

from multilab.core import changed_files, report_dir, results_dir, write_atomically
from multilab.experiments.cells import all_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.mlflow_store import is_destination
from multilab.experiments.stage_keys import STAGES, stage_keys
from multilab.experiments.study import Study, load_study

PAGE = "index.html"


def write_keys(study: Study) -> dict[str, list[str]]:
    """Write the keys of the stages of a study to ``.plan/<study>/`` and return them."""
    keys = stage_keys(study)
    for stage, lines in keys.items():
        path, text = _keys(study, stage), "\n".join(lines) + "\n"
        if not path.is_file() or path.read_text() != text:
            write_atomically(path, text)
    return keys


def write_receipt(study: Study, stage: str) -> None:
    """Write that a stage did the work its keys name; without keys (a stage run manually) there is nothing to track."""
    if _keys(study, stage).is_file():
        content = {"study": study.name, "stage": stage, "keys": _keys(study, stage).read_text().splitlines()}
        write_atomically(_receipt(study, stage), json.dumps(content, indent=1) + "\n")


def drop_stale_receipts(study: Study) -> None:
    """Remove the receipts of stages whose files are missing or were edited, so that DVC runs those stages again.

    Checked are the results in the folder of the report, its page, and, for ``publish``, the MLflow store.
    """
    edited = bool(changed_files(report_dir(study.name)))
    stale = {"analyses": edited, "evaluate": edited, "stats": edited or not has_page(study)}
    for stage in filter(stale.get, stale):
        _receipt(study, stage).unlink(missing_ok=True)
    if not is_destination(published_to(study)):
        _receipt(study, "publish").unlink(missing_ok=True)


def restore_tables(name: str) -> None:
    """Recompute the tables of a study from the store if one is missing or was edited.

    Raises
    ------
    ExperimentError
        If they are to be recomputed and a cell is not in the store.
    """
    from multilab.statistics.result_files import SCORES, TABLES  # it needs pandas, which the stage `keys` does not load

    folder = report_dir(name)
    changed = [file for file in changed_files(folder) if file in TABLES]
    if not changed and not (folder / SCORES).is_file():
        changed = [SCORES]
    if changed:
        print(f"{folder / changed[0]} is missing or was edited; it is recomputed from the stored cells")
        from multilab.experiments.store import Store
        from multilab.experiments.tables import write_tables  # it needs the libraries of the estimators

        write_tables(load_study(name), Store())


def adopt_results(study: Study) -> None:
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
    if edited := changed_files(report_dir(study.name)):
        raise ExperimentError(f"{report_dir(study.name) / edited[0]} is missing or was edited; run the study")
    other = len({cell.key for cell in all_cells(study)} ^ published_keys(study))
    if other:
        path = report_dir(study.name) / "keys.csv"
        raise ExperimentError(f"{path}: {other} keys are not those of the current settings and code; run the study")
    for stage in STAGES:
        write_receipt(study, stage)


def published_keys(study: Study) -> set[str]:
    """Return the keys of the cells whose scores, or whose failures, are in the report of a study."""
    paths = [report_dir(study.name) / name for name in ("keys.csv", "unfinished.csv")]
    lines = [line for path in paths if path.is_file() for line in path.read_text().splitlines()[1:]]
    return {line.rpartition(",")[2] for line in lines}


def has_page(study: Study) -> bool:
    """Return whether the page of a study is there; that of the arena is not looked for."""
    return study.page == "arena" or (report_dir(study.name) / PAGE).is_file()


def published_to(study: Study) -> Path:
    """Return the file that names the MLflow store of a study's last publication; not tracked by DVC."""
    return results_dir(study.name) / "published-to.json"


def _keys(study: Study, stage: str) -> Path:
    return Path(".plan") / study.name / f"{stage}.keys"


def _receipt(study: Study, stage: str) -> Path:
    return results_dir(study.name) / f"{stage}.json"
