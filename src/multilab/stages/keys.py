"""Write the keys that each stage depends on to ``.plan/``, so that DVC re-runs exactly what they say.

Runs on every ``dvc repro``: no heavy import, unless data have to be prepared first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from multilab.experiments.analyses.unit import units_of
from multilab.experiments.cells import base_score_cells, study_cells, study_parts
from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study, load_study
from multilab.ground import code_digest, json_digest, write_atomically
from multilab.ground.shell import command
from multilab.stages.common import StageLine, results_dir


def stage_keys(study: Study) -> dict[str, list[str]]:
    """Return, per stage of a study, the lines that identify its work."""
    from multilab import datasets

    found = study_parts(study)
    described = []
    for name in study.datasets:
        digests = [part.digest for part in found if part.dataset == name]
        described.append(f"{name} {(datasets.prepared_meta(name) or {})['digest']} {json_digest(digests)}")
    keys = {f"{study.name}-{m}": sorted(c.key for c in study_cells(study, m, found)) for m in study.all_methods}
    everything = json_digest(keys)
    columns = [json_digest(_texts("claims", f"aliases.yaml published/{study.paper}.csv"))] if study.paper else []
    ledger = [_room("multilab.claims")] if study.paper or study.claims else []
    analyses = {f"{study.name}-analyses": [unit.key for unit in units_of(study)]} if study.analyses else {}
    return {
        **keys,
        **analyses,
        f"{study.name}-datasets": described,
        f"{study.name}-base_scores": [cell.key for cell in base_score_cells(study, found)],
        f"{study.name}-evaluate": [everything, _evaluation(), *columns],
        f"{study.name}-stats": [
            _room("multilab.statistics"),
            _room("multilab.reports"),
            *ledger,
            json_digest(described),
        ],
    }


def _evaluation() -> str:
    """Return the digest of the metrics and of the code that applies them to stored cells."""
    claims = ("multilab.claims.naming", "multilab.claims.printed", "multilab.claims.selectors")
    within = ("multilab.experiments.results", "multilab.metrics", *claims)
    return json_digest([code_digest(name, within) for name in ("multilab.stages.evaluate", "multilab.metrics")])


def _room(package: str) -> str:
    """Return one digest for all the code and data of a room."""
    folder = Path(__file__).parents[1] / package.rpartition(".")[2]
    code = {p.stem: code_digest(f"{package}.{p.stem}", within=package) for p in sorted(folder.glob("*.py"))}
    return json_digest([code, _texts(folder.name, "templates/*.j2 *.yaml errata/*.yaml published/*.csv")])


def _texts(room: str, patterns: str) -> dict[str, str]:
    """Return the content of a room's data files, by path."""
    folder = Path(__file__).parents[1] / room
    paths = sorted(path for pattern in patterns.split() for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def planned() -> dict[str, Any]:
    """Return the content of ``params.yaml``."""
    from omegaconf import OmegaConf

    from multilab.experiments.settings import plain

    path = Path("params.yaml")
    if not path.is_file():
        raise ExperimentError(f"params.yaml is not here; run `{command('multilab')} plan study=quick` first")
    return plain(OmegaConf.load(path))


def main(argv: list[str]) -> int:
    """`multilab keys`: for the studies planned in ``params.yaml``."""
    from multilab.experiments.receipts import drop_stale_receipt

    line = StageLine("keys")
    wanted = {}
    for name in planned()["studies"]:
        wanted.update(stage_keys(load_study(name)))
        drop_stale_receipt(results_dir(name) / "published.json")
    folder = Path(".plan")
    for name, lines in wanted.items():
        write_atomically(folder / f"{name}.keys", "\n".join(lines) + "\n")
    for path in folder.glob("*.keys"):
        if path.stem not in wanted:
            path.unlink()
    line.print(f"{len(wanted)} stages of {', '.join(planned()['studies'])}")
    return 0
