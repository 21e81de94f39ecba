"""All stages of a study in order, in this process: its pipeline, for folders without DVC."""

from multilab.commands.arguments import study_of
from multilab.core import report_dir
from multilab.experiments.arguments import check_study
from multilab.stages import analyses, base_scores, evaluate, keys, preprocess, publish, stats, train


def main(argv: list[str]) -> int:
    """`multilab run study=NAME`."""
    study, _ = study_of(argv)
    check_study(study)
    for stage in (keys, preprocess, base_scores, train, analyses, evaluate, stats, publish):
        code = stage.main([f"study={study.name}"])
        if code:
            return code
    print(f"report: {report_dir(study.name) / 'index.html'}")
    return 0
