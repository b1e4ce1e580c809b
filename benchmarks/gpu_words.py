"""Skip-gram on one GPU, against our own kernels on the cores beside it and gensim's rate on two cores.

    PYTHONPATH=src python -m benchmarks.gpu_words                          # on a machine with CUDA
    PYTHONPATH=src python -m benchmarks.gpu_words --device cpu --quick     # the same logic, anywhere

Writes ``benchmarks/results/gpu_words.json``; ``python -m benchmarks --report`` puts it on the page.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from . import machine
from .report import ROOT, short, table
from .words import _correlations, _text

TITLE = "Skip-gram on one GPU"
TEXT = """
The beginning of text8 once and {copies} times over, its thousands of words in an order drawn anew each time
(a larger text of the same words), 100 numbers a word, window 5, 5 noise words. A pass is the difference of
two fits of different length over the difference of their epochs, so that reading, counting and the
certificate are not in it; the whole fit stands beside it. *loss*: of drawn pairs of the text, as the
certificate states it; *correlations*: Spearman's with WordSim-353 and MEN, in points. gensim does not run
on that machine: its rate is that of two workers on the page's own machine.
"""


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_words")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    asked = parser.parse_args()
    folder, start = ROOT / "benchmarks" / "results" / ("local" if asked.quick else ""), time.time()
    results = measure(asked.device, asked.quick)
    record = {
        "name": "gpu_words", "quick": asked.quick, "seconds": time.time() - start,
        "machine": machine.describe(machine.cores()) | {"device": machine.device_name(asked.device)},
        "missing": [], "results": results,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(machine.finite(record), indent=1)
    (folder / "gpu_words.json").write_text(text + "\n", encoding="utf8")
    print(page(results))


def measure(device: str, quick: bool) -> dict[str, Any]:
    from surefit.text import SkipGram

    text, copies = _text(quick), 2 if quick else 32
    on = None if device == "cpu" else device
    SkipGram(100, device=on, random_state=0, max_iter=1).fit(text[:20])  # compiles
    rows, gensim = [], _gensim()
    for name, corpus, epochs in (
        ("text8's beginning", text, 20),
        (f"{copies} times", _many(text, copies), 5),
    ):
        words = sum(map(len, corpus))
        for place, where in ([("GPU", on)] if on else []) + [(f"{machine.cores()} cores", None)]:
            times = []
            for count in (1, 1 + epochs):
                begin = time.perf_counter()
                model = SkipGram(100, device=where, random_state=0, max_iter=count).fit(corpus)
                times.append(time.perf_counter() - begin)
            rate = words * epochs / (times[1] - times[0])
            rows.append({
                "work": f"{name}, {1 + epochs} epochs", "place": place, "words": words, "rate": rate,
                "whole": times[1], "loss": model.loss_, "ok": model.certificate_.ok,
                "correlations": _correlations(model.word_vectors), "gensim": gensim,
            })  # fmt: skip
            print(rows[-1], flush=True)
    return {"rows": rows, "copies": copies, "goals": _goals(rows)}


def _many(text: Any, copies: int) -> Any:
    """A larger text: its parts in another order in each copy, lest windows at work at once be the same."""
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(len(text)), (copies, 1)), axis=1)
    return [text[k] for k in orders.ravel()]


def _gensim() -> float | None:
    """gensim's words a second on two cores, from the page's own run."""
    path = ROOT / "benchmarks" / "results" / "words.json"
    if not path.exists():
        return None
    results = json.loads(path.read_text(encoding="utf8"))["results"]
    row = next((row for row in results["rows"] if row["work"] == "skip-gram"), None)
    if row is None:
        return None
    return float(results["epochs"] * int(results["words"].replace(",", "")) / row["peer"])


def _goals(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for row in rows:
        if row["place"] == "GPU" and row["gensim"]:
            ratio = row["rate"] / row["gensim"]
            found.append({
                "work": f"skip-gram on a GPU, {row['work']}, against gensim on two cores", "goal": "50×",
                "measured": f"{ratio:.1f}", "reached": "yes" if ratio >= 50 else "**no**",
            })  # fmt: skip
    return found


def page(results: dict[str, Any]) -> str:
    heads = [
        "work",
        "on",
        "words/s of a pass",
        "over gensim's",
        "whole fit s",
        "loss",
        "correlations",
    ]
    lines = []
    for row in results["rows"]:
        times = f"{row['rate'] / row['gensim']:.1f}" if row["gensim"] else "–"
        rho = " / ".join(f"{100 * value:.1f}" for value in row["correlations"]) or "–"
        rate, loss = f"{row['rate']:,.0f}", short(row["loss"])
        lines.append([row["work"], row["place"], rate, times, short(row["whole"]), loss, rho])
    return f"## {TITLE}\n\n{TEXT.format(**results).strip()}\n\n{table(heads, lines)}\n"


if __name__ == "__main__":
    main()
