"""All benchmarks, one command: ``python -m benchmarks [name ...]``. Writes docs/benchmarks.md."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

from . import accuracy, certificate_cost, import_time

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = {
    "accuracy": accuracy,
    "import_time": import_time,
    "certificate_cost": certificate_cost,
}


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    import numpy
    import scipy
    import sklearn

    return {
        "cores": str(os.cpu_count()),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def main(names: list[str]) -> None:
    described = ", ".join(f"{key} {value}" for key, value in machine().items())
    pages = ["# Benchmarks", "", f"Written by `make bench`. Measured on: {described}.", ""]
    results = {}
    for name in names or list(BENCHMARKS):
        print(f"{name} ...", flush=True)
        results[name], page = BENCHMARKS[name].main()
        pages += [page, ""]
        print(page)
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    record = json.dumps({"machine": machine(), "results": results}, indent=1)
    (folder / "latest.json").write_text(record + "\n")
    if not names:
        (ROOT / "docs" / "benchmarks.md").write_text("\n".join(pages), encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1:])
