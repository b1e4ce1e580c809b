"""Words as vectors on two cores: counting, skip-gram, GloVe, the fastText classifier, beside their peers.

The text is the stored beginning of text8 (507,956 words) where the folder of public data is at hand, else a
made one of the same length. Peers read the same lists of words.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from .harness import paired
from .peers import peer
from .report import goal_cells, goal_line, paired_page, ratio_text, short

TITLE = "Words as vectors on two cores"
TEXT = """
*Text*: {words} words. *Co-occurrence*: windows of 5 and 10 words, weights 1/d, words of five occurrences and
more; the peer is a dictionary of pairs turned into a scipy matrix. *Skip-gram*: 100 numbers a word, window 5,
5 noise words, from lists of words to vectors, {epochs} epochs; gensim with {threads} workers. Quality:
Spearman's correlation with WordSim-353 and MEN, in points, means over {seeds} seeds and their standard error.
*GloVe*: 100 numbers, AdaGrad, {glove} epochs over the counts; the peer is a plain numba loop over shuffled
entries on as many threads. *fastText*: 4 classes, {texts} texts put together from AG's news, 5 epochs; from
texts in memory to a model, with the certificate, against the C++ programme from its file to a model; accuracy
on 1,900 held-out texts, means over twice as many seeds. The ratio is peer over ours in seconds.
"""
WHY = """
the kernel of skip-gram takes eight tenths of the fit, reading lists of words in Python an eighth. Per pair of
inputs it reads five rows for six products and writes them back; what is left is latency: a product of two
rows must be summed up before its sigmoid is known, and known before the rows move. CBOW draws its own noise
for each place, as gensim does, and shares nothing.
"""


def measure(options: Any) -> dict[str, Any]:
    text = _text(options.quick)
    epochs, seeds, glove, texts = (1, 1, 1, 2_000) if options.quick else (5, 3, 5, 120_000)
    rows = _counting(text, options) + _skipgram(text, epochs, seeds, options)
    rows += _glove(text, glove, options) + _classifier(texts, 2 * seeds, options)
    goals = [goal_line(row, row["peer name"]) for row in rows if row["goal"]]
    return {
        "rows": rows, "goals": goals, "epochs": epochs, "seeds": seeds, "glove": glove, "texts": texts,
        "words": f"{sum(map(len, text)):,}", "threads": options.threads,
    }  # fmt: skip


def page(results: dict[str, Any]) -> str:
    heads = [
        "work",
        "peer",
        "ours s",
        "peer s",
        "ratio",
        "worst",
        "quality: ours, peer",
        "goal",
        "reached",
    ]
    lines = []
    for row in results["rows"]:
        times = [short(row["ours"]), short(row["peer"]), ratio_text(row), f"{row['worst']:.2f}"]
        lines.append(
            [row["work"], row["peer name"], *times, row.get("quality", "–"), *goal_cells(row)]
        )
    return paired_page(TITLE, TEXT.format(**results), WHY, results, heads, lines)


def public_folder() -> Path | None:
    from tests.data import data_folder

    return data_folder()


def _text(quick: bool) -> list[list[str]]:
    """Lists of up to 1,000 words."""
    folder = public_folder()
    if folder is not None:
        with lzma.open(folder / "text" / "text8_first_3010294_chars.xz") as file:
            words = file.read().decode().split()
    else:
        rng = np.random.default_rng(0)
        words = [f"w{i}" for i in np.minimum(rng.zipf(1.3, 500_000), 30_000)]
    words = words[:20_000] if quick else words
    return [words[k : k + 1000] for k in range(0, len(words), 1000)]


# ------------------------------------------------------------------------------ counting


def _counting(text: Any, options: Any) -> list[dict[str, Any]]:
    from surefit.text import Cooccurrence

    found = []
    for window in (5, 10):
        given = {"window": window, "weighting": "harmonic", "min_count": 5}
        mine = partial(Cooccurrence(**given).fit, text)
        theirs = partial(_dictionary, text, window, 5)
        ours, peers = mine().counts_, theirs()
        same = f"largest difference {abs(ours - peers).max():.1e}"
        row = {"work": f"co-occurrence, window {window}", "peer name": "dictionary", "goal": 5.0}
        found.append(row | {"quality": same} | paired(mine, theirs, min(options.pairs, 3)))
    return found


def _dictionary(text: Any, window: int, least: int) -> Any:
    """The usual loop: words to numbers, pairs into a dictionary, then a matrix."""
    import scipy.sparse as sp

    counts: dict[str, int] = defaultdict(int)
    for words in text:
        for word in words:
            counts[word] += 1
    kept = sorted((w for w in counts if counts[w] >= least), key=lambda w: (-counts[w], w))
    number = {word: k for k, word in enumerate(kept)}
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    for words in text:
        ids = [number[w] for w in words if w in number]
        for i, a in enumerate(ids):
            for d in range(1, min(window, len(ids) - 1 - i) + 1):
                b = ids[i + d]
                pairs[a, b] += 1.0 / d
                pairs[b, a] += 1.0 / d
    keys = np.array(list(pairs))
    shape = (len(kept), len(kept))
    return sp.csr_array((np.array(list(pairs.values())), (keys[:, 0], keys[:, 1])), shape=shape)


# ------------------------------------------------------------------------------ skip-gram


def _skipgram(text: Any, epochs: int, seeds: int, options: Any) -> list[dict[str, Any]]:
    from surefit.text import SkipGram, WordVectors

    models = peer("gensim.models")
    if models is None:
        return []

    def mine(seed: int = 0, **more: Any) -> Any:
        return SkipGram(100, max_iter=epochs, random_state=seed, **more).fit(text)

    def theirs(seed: int = 0, **more: Any) -> Any:
        given = {
            "vector_size": 100, "window": 5, "negative": 5, "min_count": 5, "sample": 1e-3, "sg": 1,
            "epochs": epochs, "workers": options.threads, "seed": seed,
        }  # fmt: skip
        return models.Word2Vec(text, **given | more)

    def quality(vectors: Any) -> list[float]:
        return [100 * rho for rho in _correlations(vectors)]

    found = []
    for name, ours_given, peer_given in (
        ("skip-gram", {}, {}),
        ("skip-gram, one thread", {"deterministic": True}, {"workers": 1}),
        ("CBOW", {"architecture": "cbow"}, {"sg": 0, "alpha": 0.05}),
    ):
        scores: Any = [[], []]
        for seed in range(seeds):
            scores[0].append(quality(mine(seed, **ours_given).word_vectors))
            made = theirs(seed, **peer_given).wv
            scores[1].append(quality(WordVectors(made.index_to_key, made.vectors)))
        shown = ", ".join(_mean_text(side) for side in scores)
        row = {"work": name, "peer name": "gensim", "goal": 3.0 if name == "skip-gram" else None}
        timed = paired(partial(mine, **ours_given), partial(theirs, **peer_given), options.pairs)
        total = epochs * sum(map(len, text))
        row["quality"] = (
            f"{shown}; {total / timed['ours']:,.0f}, {total / timed['peer']:,.0f} words/s"
        )
        found.append(row | timed)
    return found


def _correlations(vectors: Any) -> list[float]:
    folder = public_folder()
    if folder is None:
        return []
    names = ("EN-WS-353-ALL.txt.gz", "EN-MEN-TR-3k.txt.gz")
    found = [vectors.evaluate(similarity=folder / "wordsim" / name) for name in names]
    return [part.rho for result in found for part in result.similarity]


def _mean_text(scores: list[list[float]], digits: int = 1) -> str:
    table = np.array(scores)
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0 * table[0]
    pairs = zip(table.mean(axis=0), error, strict=True)
    return " / ".join(f"{mean:.{digits}f} ± {se:.{digits}f}" for mean, se in pairs)


# ------------------------------------------------------------------------------ GloVe


@njit(nogil=True)
def _plain_epoch(rows, columns, counts, order, W, Z, b, c, GW, GZ, gb, gc, rate, x_max, alpha):  # type: ignore[no-untyped-def]
    """AdaGrad over entries as the paper writes it."""
    for e in order:
        i, j = rows[e], columns[e]
        error = b[i] + c[j] - np.log(counts[e])
        for k in range(W.shape[1]):
            error += W[i, k] * Z[j, k]
        f = min(1.0, (counts[e] / x_max) ** alpha) * error
        for k in range(W.shape[1]):
            gw, gz = f * Z[j, k], f * W[i, k]
            GW[i, k] += gw * gw
            GZ[j, k] += gz * gz
            W[i, k] -= rate * gw / np.sqrt(GW[i, k])
            Z[j, k] -= rate * gz / np.sqrt(GZ[j, k])
        gb[i] += f * f
        gc[j] += f * f
        b[i] -= rate * f / np.sqrt(gb[i])
        c[j] -= rate * f / np.sqrt(gc[j])


def _plain(counts: Any, epochs: int, threads: int) -> None:
    import threading

    coo, rng, d = counts.tocoo(), np.random.default_rng(0), 100
    n = counts.shape[0]
    W, Z = ((rng.random((n, d), dtype=np.float32) - 0.5) / d for _ in range(2))
    b, c = np.zeros(n, np.float32), np.zeros(n, np.float32)
    GW, GZ, gb, gc = (np.ones_like(part) for part in (W, Z, b, c))
    entries = coo.row.astype(np.int32), coo.col.astype(np.int32), coo.data.astype(np.float32)
    for _ in range(epochs):
        parts = np.array_split(rng.permutation(coo.nnz), threads)
        hands = [
            threading.Thread(
                target=_plain_epoch,
                args=(*entries, part, W, Z, b, c, GW, GZ, gb, gc, 0.05, 100.0, 0.75),
            )
            for part in parts
        ]
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()


def _glove(text: Any, epochs: int, options: Any) -> list[dict[str, Any]]:
    from surefit.text import Cooccurrence, GloVe

    counts = Cooccurrence(window=10, weighting="harmonic", min_count=5).fit(text).counts_
    mine = partial(GloVe(100, max_iter=epochs, random_state=0, certify=False).fit, counts)
    theirs = partial(_plain, counts, epochs, options.threads)
    mine(), theirs()
    timed = paired(mine, theirs, options.pairs)
    total = epochs * counts.nnz
    row = {"work": "GloVe, AdaGrad", "peer name": "numba loop", "goal": 3.0}
    row["quality"] = f"{total / timed['ours']:,.0f}, {total / timed['peer']:,.0f} pairs/s"
    return [row | timed, *_glove_program(counts, epochs, mine, options)]


def _glove_program(counts: Any, epochs: int, mine: Any, options: Any) -> list[dict[str, Any]]:
    """The authors' programme in C, where it is on the path: from its file of shuffled entries to a file."""
    program = shutil.which("glove")
    if program is None:
        print("glove is not on the path: its row is left out")
        return []
    coo = counts.tocoo()
    order = np.random.default_rng(0).permutation(coo.nnz)
    entries = np.empty(coo.nnz, [("row", "<i4"), ("column", "<i4"), ("count", "<f8")])
    entries["row"], entries["column"] = coo.row[order] + 1, coo.col[order] + 1
    entries["count"] = coo.data[order]
    with tempfile.TemporaryDirectory() as folder:
        entries.tofile(f"{folder}/entries")
        Path(folder, "words").write_text("".join(f"w{k} 1\n" for k in range(counts.shape[0])))
        given = {
            "input-file": f"{folder}/entries", "vocab-file": f"{folder}/words",
            "save-file": f"{folder}/out", "vector-size": 100, "iter": epochs, "threads": options.threads,
        }  # fmt: skip
        command = [program, *(str(part) for key in given for part in (f"-{key}", given[key]))]
        told: list[str] = []

        def theirs() -> None:
            told.append(subprocess.run(command, check=True, capture_output=True, text=True).stderr)

        theirs()
        timed = paired(mine, theirs, options.pairs)
    cost = float(re.findall(r"cost: ([0-9.]+)", told[-1])[-1])
    total = epochs * counts.nnz
    row = {"work": "GloVe, AdaGrad", "peer name": "the authors' C", "goal": 1.0}
    row["quality"] = (
        f"{total / timed['ours']:,.0f}, {total / timed['peer']:,.0f} pairs/s; loss of the last epoch "
        f"{mine().loss_trace_[-1] / counts.nnz:.4f}, {cost:.4f}"
    )
    return [row | timed]


# ------------------------------------------------------------------------------ fastText


def _news(count: int) -> tuple[list[str], list[str], list[str], list[str]]:
    """AG's news: three quarters resampled word by word to ``count`` texts, a quarter held out."""
    folder = public_folder()
    rng = np.random.default_rng(0)
    if folder is None:
        pools = [
            [f"c{c}w{i}" for i in range(3000)] + [f"w{i}" for i in range(6000)] for c in range(4)
        ]
        made = [(str(c), " ".join(rng.choice(pools[c], 40))) for c in rng.integers(0, 4, 8000)]
    else:
        path = folder / "text" / "ag_news" / "test.csv.gz"
        rows = csv.reader(io.StringIO(_read(path)))
        made = [(row[0], " ".join(row[1:]).lower()) for row in rows if len(row) >= 3]
    rng.shuffle(made)
    cut = len(made) * 3 // 4
    texts = {label: [t.split() for own, t in made[:cut] if own == label] for label, _ in made}
    labels = rng.choice(sorted(texts), count)
    drawn = []
    for label in labels:  # halves of two texts of the class: new texts of real phrases
        one, two = (texts[label][k] for k in rng.integers(0, len(texts[label]), 2))
        drawn.append(" ".join(one[: len(one) // 2] + two[len(two) // 2 :]))
    return drawn, [str(y) for y in labels], [t for _, t in made[cut:]], [y for y, _ in made[cut:]]


def _read(path: Path) -> str:
    with gzip.open(path) as file:
        return file.read().decode()


def _classifier(count: int, seeds: int, options: Any) -> list[dict[str, Any]]:
    from surefit.text import FastTextClassifier

    fasttext = peer("fasttext")
    if fasttext is None:
        return []
    X, y, X_test, y_test = _news(count)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        path.write_text(
            "".join(f"__label__{b} {a}\n" for a, b in zip(X, y, strict=True)), encoding="utf8"
        )
        for size, order in ((10, 1), (10, 2), (100, 1)):
            given = {
                "n_components": size,
                "word_ngrams": order,
                "learning_rate": 0.25,
                "max_iter": 5,
            }

            def mine(seed: int = 0, given: Any = given) -> Any:
                return FastTextClassifier(**given, random_state=seed).fit(X, y)

            def theirs(seed: int = 0, size: int = size, order: int = order) -> Any:
                return fasttext.train_supervised(
                    str(path), dim=size, wordNgrams=order, lr=0.25, epoch=5, thread=options.threads,
                    verbose=0, bucket=2_000_000 if order > 1 else 0, minCount=1, seed=seed,
                )  # fmt: skip

            right: Any = [[], []]
            for seed in range(seeds):
                right[0].append([100 * np.mean(mine(seed).predict(X_test) == np.array(y_test))])
                made = theirs(seed)
                answers = [made.f.predict(t + "\n", 1, 0.0, "strict")[0][1] for t in X_test]
                same = [a == f"__label__{b}" for a, b in zip(answers, y_test, strict=True)]
                right[1].append([100 * np.mean(same)])
            row = {
                "work": f"classifier, {size} numbers, {order}-grams",
                "peer name": "fastText",
                "goal": 1.0,
            }
            row["quality"] = ", ".join(_mean_text(side, 2) for side in right) + " %"
            found.append(row | paired(mine, theirs, min(options.pairs, 3)))
    return found
