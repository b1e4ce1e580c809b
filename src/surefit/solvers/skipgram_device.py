"""Skip-gram on a GPU: each window is a small product of matrices, and its steps are added atomically.

Of a window with m words and k noise words, which its words share, the m (1 + k) scores are one product, and
the steps of inputs and outputs two more. Thousands of windows run at once, each from the vectors as they are
when it begins. That is the lock-free scheme of :mod:`surefit.solvers.skipgram` with more hands: no two fits
are equal. Where a few words make up the text, fewer windows run at once: steps of many stale windows add up
on a common word's row, and diverge. Subsampling draws anew in each epoch, on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .skipgram import Draws, Rows

__all__ = ["passes_on"]

_ROUND = 1 << 24  # words of a text on the device at a time
_HANDS = 256  # stretches of it that are worked on at once
_SAME = 5  # windows around one word that may be worked on at once, on average
_WARPS = 4
_LEAST = 1e-4


def passes_on(
    device: str, data: Any, draws: Draws, V: Rows, Z: Rows, *, window: int, negative: int, rate: float,
    n_epochs: int, seed: int,
) -> Iterator[int]:  # fmt: skip
    """As :func:`surefit.solvers.skipgram.passes` on a GPU; V and Z are changed at the end."""
    torch, kernel = _modules(device)
    if 2 * window + 1 > 128 or negative + 1 > 63:
        raise ValueError(
            f"device={device!r} takes windows of at most 63 words and at most 62 noise words, got window="
            f"{window} and negative={negative}: lower them, or leave device out."
        )
    on = torch.device(device)
    generator = torch.Generator(on).manual_seed(seed % 2**62)
    keep, shares, others, A, B = (
        torch.as_tensor(part, device=on) for part in (draws.keep, draws.shares, draws.others, V, Z)
    )
    blocks = {"W": _power(2 * window + 1), "K": _power(negative + 1), "D": _power(V.shape[1])}
    total, done, launch = max(1, n_epochs * len(data.ids)), 0, 0
    hands = _hands(data.ids, draws.keep)
    for _ in range(n_epochs):
        for first, last in _rounds(data.starts):
            begin, end = int(data.starts[first]), int(data.starts[last])
            ids = torch.as_tensor(np.ascontiguousarray(data.ids[begin:end]), device=on)
            sizes = torch.as_tensor(np.diff(data.starts[first : last + 1]), device=on)
            segment = torch.repeat_interleave(sizes).to(torch.int32)
            stay = torch.rand(len(ids), generator=generator, device=on) < keep[ids]
            kept, segment = ids[stay], segment[stay]
            n = len(kept)
            rates = [rate * max(1.0 - (done + d) / total, _LEAST) for d in (0, end - begin)]
            launch += 1
            stretch = -(-n // hands)
            if n:
                kernel[(hands,)](
                    kept, segment, n, stretch, A, B, shares, others, len(keep), V.shape[1], V.shape[1],
                    window, negative, rates[0], (rates[0] - rates[1]) / stretch, (seed + 2 * launch) % 2**31,
                    num_warps=_WARPS, **blocks,
                )  # fmt: skip
            done += end - begin
            if n:
                torch.cuda.synchronize(on)
            yield done
    V[:], Z[:] = A.cpu().numpy(), B.cpu().numpy()


def _hands(ids: Any, keep: Any) -> int:
    """How many windows may run at once.

    Examples
    --------
    >>> _hands(np.arange(1000), np.ones(1000)), _hands(np.array([0, 1, 0, 1]), np.ones(2))
    (256, 10)
    """
    kept = np.bincount(ids, minlength=len(keep)) * keep
    largest = kept.max() / max(kept.sum(), np.finfo(np.float64).tiny)
    return int(np.clip(_SAME / max(largest, _SAME / _HANDS), 1, _HANDS))


def _rounds(starts: Any) -> Iterator[tuple[int, int]]:
    """Stretches of segments of about so many words."""
    first, n = 0, len(starts) - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + _ROUND, "right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _power(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def _modules(device: str) -> tuple[Any, Any]:
    try:
        import torch

        from .._triton.skipgram import windows
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs torch with Triton (pip install 'surefit[torch]' on a machine with a "
            "GPU); leave device out to train on the processor."
        ) from error
    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} is not a CUDA device of this machine: leave device out to train on the "
            "processor."
        )
    return torch, windows
