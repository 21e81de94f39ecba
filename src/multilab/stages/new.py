"""Write the files of a new study (settings and pipeline) or of a new method (class, YAML and test)."""

import argparse

from multilab.commands.new_method import write_method
from multilab.commands.pipeline_file import pipeline_path, pipeline_text, run_command, settings_text
from multilab.core import write_atomically
from multilab.core.messages import unknown_name
from multilab.core.shell import command, short_path
from multilab.experiments.arguments import check_study
from multilab.experiments.conf import names
from multilab.experiments.errors import ExperimentError
from multilab.experiments.own_settings import new_settings_dir
from multilab.experiments.study import load_study


def main(argv: list[str]) -> int:
    """`multilab new study NAME`, `multilab new method NAME [--family FAMILY] [--outside]`."""
    parser = argparse.ArgumentParser(prog="multilab new", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", metavar="study | method", required=True)
    study = kinds.add_parser(
        "study",
        help="conf/study/NAME.yaml, to be edited, and reports/NAME/dvc.yaml; of an existing study the pipeline only",
    )
    study.add_argument("name", help="letters, digits, - and _")
    method = kinds.add_parser("method", help="a class that works, conf/method/NAME.yaml and a test that passes")
    method.add_argument("name", help="lower-case letters, digits and _; my_method makes the class MyMethod")
    method.add_argument("--family", default="transformation", help="folder of multilab.methods (transformation)")
    method.add_argument("--outside", action="store_true", help="write into the current folder, not into the package")
    if argv and argv[0] not in ("study", "method", "-h", "--help"):
        raise ExperimentError(f"{unknown_name('kind', argv[0], ('study', 'method'))}, as in `multilab new study NAME`")
    arguments = parser.parse_args(argv)
    if arguments.kind == "method":
        return write_method(arguments.name, family=arguments.family, outside=arguments.outside)
    return _new_study(arguments.name)


def _new_study(name: str) -> int:
    """Write the settings of a study, unless they exist, and its pipeline, whose plots follow the headline metric."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ExperimentError("expected `multilab new study NAME`; a name has letters, digits, - and _")
    settings, pipeline = new_settings_dir() / "study" / f"{name}.yaml", pipeline_path(name)
    if name not in names("study"):
        write_atomically(settings, settings_text(name))
        print(f"{short_path(settings)}  the datasets, methods and metrics of the study: edit it")
    study = load_study(name)
    check_study(study)
    write_atomically(pipeline, pipeline_text(study))
    print(f"{short_path(pipeline)}  its pipeline; when the headline changes, run `multilab new study {name}` again")
    print(f"Next: {run_command(name)} (without DVC: {command('multilab')} run study={name})")
    return 0
