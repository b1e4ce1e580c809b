"""Standard errors against NIST's certified standard deviations of the estimates."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.theory.nist_data import SETS

from surefit.linear_model import LinearRegression

# Certified standard deviations of the estimates, as published with the data (15 digits).
CERTIFIED = {
    "Norris": "0.232818234301152 0.429796848199937E-03",
    "Pontius": "0.107938612033077E-03 0.157817399981659E-09 0.486652849992036E-16",
    "NoInt1": "0.165289256198347E-01",
    "NoInt2": "0.420827318078432E-01",
    "Filip": """298.084530995537 559.779865474950 466.477572127796 227.204274477751 71.6478660875927
    15.2897178747400 2.23691159816033 0.221624321934227 0.142363763154724E-01 0.535617408889821E-03
    0.896632837373868E-05""",
    "Longley": """890420.383607373 84.9149257747669 0.334910077722432E-01 0.488399681651699
    0.214274163161675 0.226073200069370 455.478499142212""",
    "Wampler3": """2152.32624678170 2363.55173469681 779.343524331583 101.475507550350 5.64566512170752
    0.112324854679312""",
    "Wampler4": """215232.624678170 236355.173469681 77934.3524331583 10147.5507550350 564.566512170752
    11.2324854679312""",
    "Wampler5": """21523262.4678170 23635517.3469681 7793435.24331583 1014755.07550350 56456.6512170752
    1123.24854679312""",
}  # fmt: skip
RESIDUAL = {
    "Norris": 0.884796396144373, "Pontius": 0.205177424076185e-03, "NoInt1": 3.56753034006338,
    "NoInt2": 0.369274472937998, "Filip": 0.334801051324544e-02, "Longley": 304.854073561965,
    "Wampler3": 2360.14502379268, "Wampler4": 236014.502379268, "Wampler5": 23601450.2379268,
}  # fmt: skip
certified_sets = pytest.mark.parametrize(
    "strd", [d for d in SETS if d.name in CERTIFIED], ids=lambda d: d.name
)


def inverse(matrix):
    """By Gauss and Jordan, in fractions."""
    k = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(k))] for i, row in enumerate(matrix)]
    for c in range(k):
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for r in range(k):
            if r != c:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c])]
    return [row[k:] for row in rows]


@certified_sets
def test_the_certified_deviations_follow_from_the_decimals(strd):
    """sigma^2 (A'A)^-1 in exact fractions gives all published digits: no number above is a slip."""
    rows = strd.columns(Fraction)
    rows = [[Fraction(1), *row] for row in rows] if strd.intercept else rows
    y, k = [Fraction(v) for v in strd.y], len(rows[0])
    G = inverse([[sum(r[i] * r[j] for r in rows) for j in range(k)] for i in range(k)])
    b = [sum(r[i] * t for r, t in zip(rows, y)) for i in range(k)]
    w = [sum(g * v for g, v in zip(row, b)) for row in G]
    rss = sum((t - sum(a * c for a, c in zip(r, w))) ** 2 for r, t in zip(rows, y))
    variance = rss / (len(y) - k)
    with mpmath.workdps(40):
        for j, text in enumerate(CERTIFIED[strd.name].split()):
            exact = mpmath.sqrt(mpmath.mpf((v := variance * G[j][j]).numerator) / v.denominator)
            assert abs(exact / mpmath.mpf(text) - 1) <= 5e-15
        exact = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
        assert abs(exact / mpmath.mpf(repr(RESIDUAL[strd.name])) - 1) <= 5e-15


@pytest.mark.spec("REG-4", "REG-8")
@certified_sets
def test_certified_deviations(strd):
    """Right digits; rounding Filip's powers to float64 alone leaves 8 (see test_nist_strd)."""
    X, y = strd.arrays()
    s = LinearRegression(fit_intercept=strd.intercept).fit(X, y).summary(X, y)
    want = np.array(CERTIFIED[strd.name].split(), dtype=float)
    digits = {"Filip": 7.0, "Longley": 11.5}.get(strd.name, 12.5)
    assert -np.log10(np.abs(s.std_error / want - 1).max() + 1e-16) >= digits
    assert s.noise.scale == pytest.approx(RESIDUAL[strd.name], rel=10.0**-digits)
    if strd.name == "NoInt1":
        assert s.r2 == pytest.approx(0.999365492298663, rel=1e-12)  # about 0, as NIST has it
    if strd.name == "Longley":
        assert s.r2 == pytest.approx(0.995479004577296, rel=1e-12)
