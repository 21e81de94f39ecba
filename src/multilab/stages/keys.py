"""Write what identifies the work of each stage to ``.plan/<study>/``, so that DVC runs again what changed.

Runs on every ``dvc repro``: no heavy import, unless data have to be prepared first. It also writes the settings that
``dvc params`` shows.
"""

from multilab.commands.arguments import study_of
from multilab.commands.dvc_files import write_parameters
from multilab.commands.progress import StageLine
from multilab.commands.receipts import adopt_results, drop_stale_receipts, write_keys

ADOPT = "--adopt"


def main(argv: list[str]) -> int:
    """`multilab keys study=NAME [--adopt]`.

    ``--adopt`` also records all stages as done, for results that are already in ``reports/<study>``: their cells must
    be those of the settings and the code of today. ``dvc commit -f`` on the pipeline file then accepts them.
    """
    study, _ = study_of([argument for argument in argv if argument != ADOPT])
    line = StageLine("keys")
    keys = write_keys(study)
    write_parameters(study)
    drop_stale_receipts(study)
    if ADOPT in argv:
        adopt_results(study)
    line.print(f"{len(keys)} stages of {study.name}")
    return 0
