"""Look into the store of cells."""

from __future__ import annotations

import json
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.store import Store


def differences(a: Any, b: Any, at: str = "") -> list[str]:
    """Return what differs between two records' parts, a line each."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = sorted(set(a) | set(b))
        return [line for k in keys for line in differences(a.get(k), b.get(k), f"{at}.{k}" if at else str(k))]
    return [] if a == b else [f"{at}: {json.dumps(a)} -> {json.dumps(b)}"]


def main(argv: list[str]) -> int:
    """`multilab cells list | show KEY | why KEY KEY`; keys may be shortened."""
    store, words = Store(), argv or ["list"]
    verb, keys = words[0], words[1:]
    if verb == "list" and not keys:
        found = [store.record(key) for key in store.finished()]
        for record in sorted(found, key=lambda r: r["label"]):
            print(f"{record['key'][:12]}  {record.get('fit_seconds', 0):9.2f} s  {record['label']}")
        print(f"{len(found)} cells in {store.root}")
    elif verb == "show" and len(keys) == 1:
        print(json.dumps(store.record(store.find(keys[0])), indent=1, sort_keys=True))
    elif verb == "why" and len(keys) == 2:
        one, other = (store.record(store.find(key)) for key in keys)
        print(f"{one['label']}  |  {other['label']}")
        print("\n".join(differences(one["parts"], other["parts"])) or "the same cell")
    else:
        raise ExperimentError("expected: multilab cells list | show KEY | why KEY KEY")
    return 0
