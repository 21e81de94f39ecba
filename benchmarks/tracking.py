"""Start-up and write rates of MLflow stores, as `multilab study publish` uses them.

    python benchmarks/tracking.py URI [WRITERS] [RUNS]

Each of the writers is a process that opens the store (timed: until the first answer) and then publishes RUNS runs of 10
parameters and 25 numbers (means of 10 metrics, and the 5 splits of three) with a data set, all writers at once. Prints
one line; the store should be empty before.
"""

import argparse
import json
import subprocess
import sys
import time

WRITER = """
import json, sys, tempfile, time
began = time.perf_counter()
from multilab.experiments.track import RunRecord, Tracker
imported = time.perf_counter()
uri, number, n_runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tracker = Tracker(uri, tempfile.mkdtemp())
opened = time.perf_counter()
records = [
    RunRecord(
        study="benchmark", method=f"m{number}", dataset=f"d{d}", title="M", params={f"p{i}": i for i in range(10)},
        metrics={f"metric{m}": {s: (d + s + m) / 1000 for s in range(5)} for m in range(10)}, measured={},
        facts={"digest": "e" * 64}, cells=[f"{number} {d} {s}" for s in range(5)], started=1.7e9, seconds=1.0,
        headline=("metric0", "metric1", "metric2"),
    )
    for d in range(n_runs)
]
print("ready", flush=True)
sys.stdin.readline()
began_writing = time.perf_counter()
tracker.publish("benchmark", records, prune=False)
print(json.dumps([imported - began, opened - imported, time.perf_counter() - began_writing]))
"""


def main() -> None:
    """Print imports, opening and runs per second of one store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uri", help="address of the store")
    parser.add_argument("writers", nargs="?", type=int, default=1)
    parser.add_argument("runs", nargs="?", type=int, default=50)
    given = parser.parse_args()
    command = [sys.executable, "-c", WRITER, given.uri]
    processes = [
        subprocess.Popen(
            [*command, str(number), str(given.runs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(given.writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    began = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    rows = [json.loads(process.communicate()[0].splitlines()[-1]) for process in processes]
    seconds = time.perf_counter() - began
    imports, opening = (max(row[column] for row in rows) for column in (0, 1))
    rate = given.writers * given.runs / seconds
    opened = f"{given.writers} writers: imports {imports:.1f} s, opening {opening:.1f} s"
    print(f"{opened}, {rate:.1f} runs/s, {25 * rate:.0f} numbers/s")


if __name__ == "__main__":
    main()
