"""The forest plot of a summary: one line a coefficient, its interval across, and zero to compare with."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .summary import Summary

__all__ = ["forest"]

Array = NDArray[np.float64]
_COLOURS = ("#1f5fa8", "#c4511d", "#3b7d3c", "#7b4fa3", "#a8791f", "#2a8c8c", "#b0336e", "#5c5c5c")
_FAINT = "#9aa5b1"
_ROW = 0.27  # inches a line
_NAME = 28  # letters of a name
_TITLE = 56  # letters of a line of the title


def forest(summary: Summary, ax: Any, *, sort: bool, most: int, intercept: bool, per: str) -> Any:
    """Draw; see :meth:`Summary.plot`."""
    if per not in ("unit", "sd"):
        raise ValueError(f"per must be 'unit' or 'sd', got {per!r}.")
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most!r}.")
    coef, low, high = (np.atleast_2d(a) for a in (summary.coef, summary.low, summary.high))
    if len(coef) > len(_COLOURS):
        raise ValueError(
            f"a forest plot shows at most {len(_COLOURS)} outputs, this summary has {len(coef)}. "
            "Plot to_frame() output by output instead."
        )
    kept, left_out = _choose(summary, coef, sort=sort, most=most, intercept=intercept, per=per)
    if per == "sd":
        scale = np.where(np.isnan(summary.feature_scale), 1.0, summary.feature_scale)
        coef, low, high = coef * scale, low * scale, high * scale
    if ax is None:
        ax = _new_axes(len(kept), len(coef))
    _draw(ax, summary, coef[:, kept], low[:, kept], high[:, kept])
    ax.set_yticks(range(len(kept)), [_name(summary.names[j]) for j in kept])
    ax.set_ylim(len(kept) - 0.4, -0.6)  # the first at the top
    ax.set_xlabel(_label(summary, per))
    title = textwrap.wrap(f"{summary.model}: {summary.response}", _TITLE)
    if left_out:
        title.append(f"the {most} largest of {most + left_out} features")
    ax.set_title(_plain_text("\n".join(title)), loc="left", fontsize="medium")
    if summary.outputs:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _choose(
    summary: Summary, coef: Array, *, sort: bool, most: int, intercept: bool, per: str
) -> tuple[list[int], int]:
    """Which parameters to draw, in which order, and how many are left out."""
    has_intercept = bool(np.isnan(summary.feature_scale[0]))
    features = np.arange(int(has_intercept), coef.shape[1])
    scale = np.ones(coef.shape[1]) if per == "unit" else np.nan_to_num(summary.feature_scale)
    size = np.abs(coef * scale).max(axis=0)
    largest = features[np.argsort(-size[features], kind="stable")][:most]
    kept = largest if sort else np.sort(largest)
    front = [0] if has_intercept and intercept else []
    return front + kept.tolist(), len(features) - len(kept)


def _draw(ax: Any, summary: Summary, coef: Array, low: Array, high: Array) -> None:
    outputs, rows = coef.shape
    tested = not np.isnan(summary.p_value).all()
    for band in range(1, rows, 2):  # so that the eye finds its line
        ax.axhspan(band - 0.5, band + 0.5, color="#f3f5f7", zorder=0, linewidth=0)
    ax.axvline(0.0, color="#30363d", linewidth=0.9, zorder=1)
    for k in range(outputs):
        at = np.arange(rows) + (k - (outputs - 1) / 2) * 0.7 / max(outputs, 1)
        known = ~np.isnan(low[k])
        crosses = known & tested & (low[k] <= 0) & (high[k] >= 0)
        hollow = crosses | (~known & (coef[k] == 0))
        colour = _COLOURS[k]
        thick = 2.2 if outputs == 1 else 1.4
        for part, shade in ((known & ~crosses, colour), (known & crosses, _soft(colour, outputs))):
            ax.hlines(at[part], low[k][part], high[k][part], color=shade, linewidth=thick, zorder=2)
        ax.hlines(at[~known], 0.0, coef[k][~known], color=colour, linewidth=0.6, zorder=2)
        size = 22 if outputs == 1 else 12
        face = np.where(hollow, "white", colour)
        edge = np.where(hollow, _soft(colour, outputs), colour)
        label = _plain_text(summary.outputs[k]) if summary.outputs else None
        ax.scatter(coef[k], at, s=size, c=face, edgecolors=edge, linewidths=1.1, zorder=3)
        if (
            label is not None
        ):  # an entry of its own, so that the first point does not decide its look
            ax.plot([], [], "o-", color=colour, markersize=4, label=label)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.03)


def _soft(colour: str, outputs: int) -> str:
    return _FAINT if outputs == 1 else colour


def _label(summary: Summary, per: str) -> str:
    unit = "unit" if per == "unit" else "standard deviation"
    what = f"coefficient per {unit} of the feature"
    if np.isnan(summary.std_error).all():
        return f"{what}\nno intervals: see the notes"
    ends = f"{what}\n{100 * summary.level:.6g} % intervals"
    if np.isnan(summary.p_value).all():
        return f"{ends} of a shrunken estimate: they leave out its bias"
    return f"{ends}, hollow where they contain 0"


def _new_axes(rows: int, outputs: int) -> Any:
    from matplotlib import pyplot as plt

    height = 1.3 + _ROW * rows * (1.0 if outputs == 1 else 0.6 + 0.4 * outputs)
    _, ax = plt.subplots(figsize=(7.2, min(height, 40.0)), layout="constrained")
    return ax


def _name(text: str) -> str:
    if len(text) > _NAME:
        text = f"{text[: _NAME // 2]}…{text[-(_NAME // 2 - 1) :]}"
    return _plain_text(text)


def _plain_text(text: str) -> str:
    """A dollar sign is a dollar sign, not mathematics."""
    return text.replace("$", r"\$")
