"""Write the files of a new study: its settings and its pipeline."""

from multilab.commands.pipeline_file import pipeline_path, pipeline_text, run_command, settings_text
from multilab.core import conf_dir, write_atomically
from multilab.core.shell import command, short_path
from multilab.experiments.arguments import check_study
from multilab.experiments.errors import ExperimentError
from multilab.experiments.study import load_study


def main(argv: list[str]) -> int:
    """`multilab new study NAME`.

    Writes ``conf/study/NAME.yaml``, to be edited, and ``reports/NAME/dvc.yaml``, the pipeline of the study. Of a study
    whose settings exist, the pipeline file is written again: its plots follow the headline metric.
    """
    if len(argv) != 2 or argv[0] != "study" or not argv[1].replace("-", "").replace("_", "").isalnum():
        raise ExperimentError("expected `multilab new study NAME`; a name has letters, digits, - and _")
    name = argv[1]
    settings, pipeline = conf_dir() / "study" / f"{name}.yaml", pipeline_path(name)
    if not settings.is_file():
        write_atomically(settings, settings_text(name))
        print(f"{short_path(settings)}  the datasets, methods and metrics of the study: edit it")
    study = load_study(name)
    check_study(study)
    write_atomically(pipeline, pipeline_text(study))
    print(f"{short_path(pipeline)}  its pipeline; when the headline changes, run `multilab new study {name}` again")
    print(f"Next: {run_command(name)} (without DVC: {command('multilab')} run study={name})")
    return 0
