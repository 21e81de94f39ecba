"""The pipeline file of a study: the same stages for every study, its own parameters, metrics and plots."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from multilab.core.shell import command
from multilab.experiments.study import Study

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

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), trim_blocks=True, keep_trailing_newline=True
)


def pipeline_path(study: str) -> Path:
    """Return where the pipeline file of a study is: ``reports/<study>/dvc.yaml``, of the default study ``dvc.yaml``."""
    return Path("dvc.yaml") if study == DEFAULT_STUDY else Path("reports") / study / "dvc.yaml"


def run_command(study: str) -> str:
    """Return the command that runs a study in the current folder: its pipeline, or without one all its stages."""
    path = pipeline_path(study)
    if not path.is_file():
        return f"{command('multilab')} study run --study {study}"
    return f"{command('dvc')} repro{'' if study == DEFAULT_STUDY else f' {path.as_posix()}'}"


def settings_text(study: str) -> str:
    """Return the settings of a new study, to be edited."""
    return _TEMPLATES.get_template("study.yaml.j2").render(study=study)


def pipeline_text(study: Study) -> str:
    """Return the content of the pipeline file of a study; plots added to an existing file are kept."""
    path = pipeline_path(study.name)
    top = path.parent == Path()
    text = _TEMPLATES.get_template("dvc.yaml.j2").render(
        study=study.name,
        top=top,
        target="" if top else f" {path.as_posix()}",
        stages=_BEFORE,
        headline=study.headline,
        folder=f"reports/{study.name}/" if top else "",
    )
    added = path.read_text().partition("folds.csv: method\n")[2] if path.is_file() else ""
    return text + added
