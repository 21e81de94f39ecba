"""All stages of a study in order, in this process: the pipeline of ``dvc.yaml`` for folders without DVC."""

from __future__ import annotations

from typing import Any

from multilab.stages import analyses, base_scores, evaluate, preprocess, publish, stats, train
from multilab.stages.common import report_dir, study_of


def main(argv: list[str]) -> int:
    """`multilab run study=NAME`."""
    from multilab.experiments.arguments import check_study

    study, _ = study_of(argv)
    check_study(study)
    word = f"study={study.name}"
    steps: list[tuple[Any, list[str]]] = [(preprocess, []), (base_scores, [])]
    steps += [(train, [f"method={name}"]) for name in study.all_methods]
    steps += [(analyses, [])] if study.analyses else []
    steps += [(evaluate, []), (stats, []), (publish, [])]
    for stage, rest in steps:
        code = stage.main([word, *rest])
        if code:
            return code
    print(f"report: {report_dir(study.name) / 'index.html'}")
    return 0
