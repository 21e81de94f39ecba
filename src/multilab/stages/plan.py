"""Compose studies into ``params.yaml``, from which ``dvc.yaml`` makes its stages."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study, load_study, names
from multilab.ground import write_atomically
from multilab.ground.shell import command
from multilab.stages.common import arguments

HEADER = "# Written by `multilab plan`; change conf/study/ and plan again instead of editing this.\n"


def plan(studies: list[Study]) -> dict[str, Any]:
    """Return the content of ``params.yaml`` for some studies: plain dictionaries, so that stages are named by key."""
    from multilab import datasets

    runs: dict[str, Any] = {}
    for study in studies:
        for name in study.datasets:
            card = datasets.card(name)
            if not card.available:
                raise ExperimentError(f"study {study.name}: dataset {name} cannot be had: {card.reason}")
        for name in study.all_methods:
            after = "base_scores" if study.method(name).base_scores else "datasets"
            runs[f"{study.name}-{name}"] = {
                "study": study.name,
                "method": name,
                "base": study.base(name),
                "after": after,
            }
        if not study.datasets or not study.methods:
            raise ExperimentError(f"study {study.name} has no datasets or no methods, so there is nothing to plan")
    analysed = {study.name: {"study": study.name} for study in studies if study.analyses}
    last = {study.name: "analyses" if study.analyses else "datasets" for study in studies}
    return {
        "studies": {name: {"study": name, "after": stage} for name, stage in last.items()},
        "analysed": analysed,
        "runs": runs,
    }


def whole_lock(lock: Path) -> Any:
    """Return the content of ``dvc.lock``, or ``None`` if DVC would refuse it: it is not written in one step."""
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from ruamel.yaml import YAML, YAMLError
    from voluptuous import Invalid

    try:
        content = YAML().load(lock)
        COMPILED_LOCKFILE_SCHEMA(content)
    except (YAMLError, Invalid):
        return None
    return content


def prune(lock: Path, known: list[str]) -> int:
    """Remove the entries of ``dvc.lock`` whose study is gone from ``conf/study``; return how many."""
    if not lock.is_file():
        return 0
    from ruamel.yaml import YAML

    content = whole_lock(lock)
    if content is None:
        lock.unlink()
        print(f"{lock} broke off (DVC was killed as it wrote) and is removed; finished cells are kept", file=sys.stderr)
        return 0
    stages = content.get("stages") or {}
    ours = [name for name in stages if "@" in name]
    gone = [n for n in ours if not any(f"{n.split('@', 1)[1]}-".startswith(f"{study}-") for study in known)]
    for name in gone:
        del stages[name]
    if gone:
        text = io.StringIO()
        YAML().dump(content, text)
        write_atomically(lock, text.getvalue())
    return len(gone)


def main(argv: list[str]) -> int:
    """`multilab plan study=quick|NAME,NAME|all`."""
    from omegaconf import OmegaConf

    from multilab.experiments.arguments import check_study

    asked = arguments(argv, "study").get("study", "quick")
    every = names("study")
    studies = [load_study(name) for name in (every if asked == "all" else asked.split(","))]
    for study in studies:
        check_study(study)
    content = plan(studies)
    text = HEADER + OmegaConf.to_yaml(OmegaConf.create(content))
    target = Path("params.yaml")
    if not target.is_file() or target.read_text() != text:
        write_atomically(target, text)
    dropped = prune(Path("dvc.lock"), every)
    stages = 1 + 5 * len(studies) + len(content["runs"]) + len(content["analysed"])
    note = f"; {dropped} entries of dropped studies removed from dvc.lock" if dropped else ""
    after = f"{command('dvc')} repro" if Path("dvc.yaml").is_file() else f"{command('multilab')} run study={asked}"
    print(f"planned {', '.join(content['studies'])}: {len(content['runs'])} runs, {stages} stages{note}. Next: {after}")
    return 0
