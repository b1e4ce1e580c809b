"""Matrix factorisation: ratings against Surprise's SVD, implicit feedback against implicit's ALS."""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .harness import paired
from .peers import ours, peer
from .report import goal_cells, goal_line, paired_page, ratio_text, short, size

TITLE = "Matrix factorisation"
TEXT = """
*Ratings.* The pairs of MovieLens-1M with made ratings (users' and items' biases, twelve tastes of falling
weight, noise of 0.75, rounded to 1..5), and those of its ratings that are at hand (487,650, of users 1 to
2,999). A tenth is held out as a test; of the rest a tenth chooses the parameters of each contender, which
is then fitted to all of the rest and timed. Surprise's `SVD` runs with its defaults (100 factors, 20
epochs), and with the best of a small grid; ours is ALS with biases in float32. Predictions are clipped.
*Implicit feedback.* k = 64, confidence 41 on every pair, penalty 10, float32. `implicit`'s ALS (conjugate
gradients, equal threads, one BLAS thread as it asks for) runs a number of iterations; a neutral float64
evaluator computes the weighted loss over all pairs; ours runs the fewest iterations that come as low. Both
sides' fits are timed, our certificate included.
"""
WHY = """
rows of Gowalla hold 27 entries on average: the products with K x K matrices around the steps
take as long as the conjugate gradient steps themselves, and the first iterations gain less.
"""
ALPHA, REG, FACTORS = 40.0, 10.0, 64
Triplets = tuple[Any, Any, Any]


def measure(options: Any) -> dict[str, Any]:
    model = ours("MatrixFactorization", "decomposition")
    if model is None:
        return {"skipped": "surefit.decomposition has no MatrixFactorization yet."}
    rows: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that are stopped early on purpose
        if surprise := peer("surprise"):
            for work, data in _rated(options.quick):
                rows += _explicit(model, surprise, work, data, options)
        if implicit := peer("implicit.als"):
            for work, X in _seen(options.quick):
                rows += _implicit(model, implicit, work, X, options)
    return {"rows": rows, "goals": [goal_line(row) for row in rows if row["goal"]]}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "peer", "ours", "ours s", "peer s", "ratio", "worst", "ours reaches", "peer reaches",
             "goal", "reached"]  # fmt: skip
    lines = []
    for row in results["rows"]:
        lines.append([
            row["work"], row["peer name"], row["setting"], short(row["ours"]), short(row["peer"]),
            ratio_text(row), f"{row['worst']:.2f}", row["our end"], row["peer end"], *goal_cells(row),
        ])  # fmt: skip
    return paired_page(TITLE, TEXT, WHY, results, heads, lines)


# ---------------------------------------------------------------------------- data


def _movielens() -> tuple[Any, Any, Any] | None:
    """Users, items and ratings (0 where not known) of MovieLens-1M, numbered from 0."""
    from tests.data import data_folder

    folder = data_folder()
    if folder is None or not (folder / "recsys" / "ml-1m").is_dir():
        return None
    with np.load(folder / "recsys" / "ml-1m" / "ml-1m.npz") as part:
        users, items = (np.unique(part[name], return_inverse=True)[1] for name in ("user", "item"))
        return users, items, part["rating"].astype(np.float64)


def _pairs(quick: bool) -> tuple[Any, Any]:
    """MovieLens's pairs, or made ones of its size."""
    found = None if quick else _movielens()
    if found is not None:
        return found[0], found[1]
    n, p, m = (200, 100, 4_000) if quick else (6040, 3706, 1_300_000)
    rng = np.random.default_rng(2)
    pair = np.unique(rng.integers(n, size=m) * p + (p * rng.random(m) ** 2.5).astype(np.int64))
    return pair // p, pair % p


def _rated(quick: bool) -> list[tuple[str, Triplets]]:
    users, items = _pairs(quick)
    rng, k = np.random.default_rng(3), 12
    n, p = int(users.max()) + 1, int(items.max()) + 1
    U = rng.normal(size=(n, k))
    V = rng.normal(size=(p, k)) * np.sqrt(0.6 ** np.arange(k))
    x = 3.58 + 0.4 * rng.normal(size=n)[users] + 0.55 * rng.normal(size=p)[items]
    x += 0.35 * np.einsum("ij,ij->i", U[users], V[items]) + 0.75 * rng.normal(size=len(users))
    cases = [
        (f"made ratings, {size(n, p)}, {size(len(x))}", (users, items, np.clip(np.round(x), 1, 5)))
    ]
    if not quick and (found := _movielens()) is not None:
        known = found[2] > 0
        cases.append(
            (f"MovieLens-1M, {size(int(known.sum()))} ratings", tuple(v[known] for v in found))
        )
    return cases


def _seen(quick: bool) -> list[tuple[str, Any]]:
    from tests.data import data_folder

    users, items = _pairs(quick)
    X = sp.csr_array((np.ones(len(users), dtype=np.float32), (users, items)))
    cases = [(f"pairs of MovieLens-1M, {size(*X.shape)}", X)]
    folder = data_folder()
    if not quick and folder is not None and (folder / "recsys" / "gowalla").is_dir():
        with np.load(folder / "recsys" / "gowalla" / "gowalla_lightgcn.npz") as part:
            index, ptr = part["train_items"].astype(np.int32), part["train_indptr"]
            Y = sp.csr_array(
                (np.ones(len(index), dtype=np.float32), index, ptr), shape=(29858, 40981)
            )
        cases.append((f"Gowalla, {size(*Y.shape)}", Y))
    return cases


# ---------------------------------------------------------------------------- ratings


def _explicit(
    model: Any, surprise: Any, work: str, data: Triplets, options: Any
) -> list[dict[str, Any]]:
    from surefit.decomposition import ratings

    users, items, values = data
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    rng = np.random.default_rng(0)
    test = rng.random(len(values)) < 0.1
    choose = ~test & (rng.random(len(values)) < 0.1)

    def matrix(part: Any) -> Any:
        return ratings(users[part], items[part], values[part].astype(np.float32), shape=shape)

    def error(predicted: Any, part: Any) -> float:
        return float(np.sqrt(np.mean((np.clip(predicted, 1, 5) - values[part]) ** 2)))

    def fit(settings: dict[str, Any], X: Any) -> Any:
        return model(biases=True, reg_biases=4.0, random_state=0, **settings).fit(X)

    def mine(found: Any, part: Any) -> float:
        return error(found.predict(users[part], items[part]), part)

    def theirs(found: Any, part: Any) -> float:
        i, j = users[part], items[part]
        P = found.trainset.global_mean + found.bu[i] + found.bi[j]
        return error(P + np.einsum("ij,ij->i", found.pu[i], found.qi[j]), part)

    def svd(settings: dict[str, Any], trainset: Any) -> Any:
        return surprise.SVD(random_state=0, **settings).fit(trainset)

    part, rest = ~test & ~choose, ~test
    grid = [
        {"n_components": k, "reg": reg, "tol": tol}
        for k, reg, tol in itertools.product((6, 8, 12), (8.0, 12.0, 15.0), (0.03, 0.01))
    ]
    X = matrix(part)
    chosen = min(grid, key=lambda settings: mine(fit(settings, X), choose))
    X = matrix(rest)
    own = mine(fit(chosen, X), test)
    T = _trainset(users[part], items[part], values[part], shape)
    small = [
        {"n_factors": k, "n_epochs": 30, "lr_all": lr, "reg_all": reg}
        for k, lr, reg in itertools.product((10, 20), (0.007, 0.01), (0.05, 0.08))
    ]
    best = min(small, key=lambda settings: theirs(svd(settings, T), choose))
    T = _trainset(users[rest], items[rest], values[rest], shape)
    rows = []
    for name, settings, goal in (
        ("Surprise SVD, defaults", {}, 5.0),
        (f"Surprise SVD, {_words(best)}", best, None),
    ):
        print(f"    {work}: {name} ...", flush=True)
        end = theirs(svd(settings, T), test)
        times = paired(partial(fit, chosen, X), partial(svd, settings, T), options.pairs)
        row = {"work": work, "peer name": name, "setting": f"ALS, {_words(chosen)}", "goal": goal}
        rows.append(row | {"our end": f"RMSE {own:.4f}", "peer end": f"RMSE {end:.4f}"} | times)
    return rows


def _trainset(users: Any, items: Any, values: Any, shape: tuple[int, int]) -> Any:
    """Surprise's own container, with our numbers."""
    from surprise.trainset import Trainset

    by_user: Any = defaultdict(list)
    by_item: Any = defaultdict(list)
    for i, j, x in zip(users.tolist(), items.tolist(), values.tolist(), strict=True):
        by_user[i].append((j, x))
        by_item[j].append((i, x))
    return Trainset(by_user, by_item, shape[0], shape[1], len(values), (1, 5), {}, {})


def _words(settings: dict[str, Any]) -> str:
    names = {
        "n_components": "K",
        "n_factors": "K",
        "n_epochs": "epochs",
        "lr_all": "lr",
        "reg_all": "reg",
    }
    return ", ".join(f"{names.get(name, name)} {value:g}" for name, value in settings.items())


# ---------------------------------------------------------------------------- implicit feedback


def weighted_loss(X: Any, U: Any, V: Any) -> float:
    """1/2 sum over all pairs of c (p - <u, v>)^2, plus the penalty, in float64."""
    U, V = np.asarray(U, dtype=np.float64), np.asarray(V, dtype=np.float64)
    i = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    total = float(((U.T @ U) * (V.T @ V)).sum()) + REG * float((U**2).sum() + (V**2).sum())
    for start in range(0, len(i), 1 << 16):
        part = slice(start, start + (1 << 16))
        m = np.einsum("ij,ij->i", U[i[part]], V[X.indices[part]])
        total += float(((1.0 + ALPHA) * (1.0 - m) ** 2 - m * m).sum())
    return 0.5 * total


def _implicit(model: Any, implicit: Any, work: str, X: Any, options: Any) -> list[dict[str, Any]]:
    from threadpoolctl import threadpool_limits

    confidences = sp.csr_matrix(
        (X.data * np.float32(1.0 + ALPHA), X.indices, X.indptr), shape=X.shape
    )

    def theirs(iterations: int) -> Any:
        settings = {"factors": FACTORS, "regularization": REG, "alpha": 1.0, "random_state": 0}
        with threadpool_limits(1, "blas"):
            found = implicit.AlternatingLeastSquares(
                iterations=iterations, num_threads=options.threads, **settings
            )
            found.fit(confidences, show_progress=False)
        return found

    def mine(iterations: int) -> Any:
        return model(
            FACTORS,
            implicit=True,
            alpha=ALPHA,
            reg=REG,
            max_iter=iterations,
            tol=0.0,
            random_state=0,
        ).fit(X)

    mine(1)
    rows = []
    for count in (3,) if options.quick else (15, 50) if "Movie" in work else (15,):
        print(f"    {work}: implicit, {count} iterations ...", flush=True)
        found = theirs(count)
        level = weighted_loss(X, found.user_factors, found.item_factors)
        trace = mine(count).loss_trace_  # says where to look; the evaluator decides
        least = max(1, int(np.count_nonzero(trace > level)))
        while True:
            end = mine(least)
            own = weighted_loss(X, end.user_factors_, end.item_factors_)
            if own <= level or least >= 60:
                break
            least += 1
        pairs = min(3, options.pairs) if count > 15 or "Movie" not in work else options.pairs
        times = paired(partial(mine, least), partial(theirs, count), pairs)
        row = {"work": f"{work}, k={FACTORS}", "peer name": f"implicit ALS, {count} iterations"}
        row |= {"setting": f"{least} iterations", "goal": 2.0 if count == 15 else None}
        rows.append(row | {"our end": f"loss {own:.6g}", "peer end": f"loss {level:.6g}"} | times)
    return rows
