r"""How a pass of a module rounds, from its precision and from torch's settings (for certified bounds).

With the unit of rounding u of its sums and a share p lost by each product (:class:`.interval.Rounding`); the
least normal number is that of float32 for all but float64:

==========  ==============  =====================================================================
arithmetic  u, p            why
==========  ==============  =====================================================================
float64     2^-53, 0        53 digits
float32     2^-24, 0        24 digits
bfloat16    2^-8, 0         8 digits, sums included
tf32        2^-22, 2^-9     factors are cut to 11 digits, by up to 2^-10 each where they are cut off and not
                            rounded; products are exact, and a tensor core cuts off what it sums
==========  ==============  =====================================================================

float32 products may also be taken of factors in bfloat16 (``torch.set_float32_matmul_precision("medium")``):
then each factor is off by 2^-8.

The settings are those at the time of the call. A pass under ``torch.autocast`` is not covered.
"""

from __future__ import annotations

from typing import Any

import torch

from ._graph import Graph
from ._layers import Convolution
from .interval import DOUBLE, Rounding

__all__ = ["ARITHMETIC", "as_it_runs"]

_SUMS, _LEAST = 2.0**-22, 2.0**-126
_PRODUCTS = {
    "tf32": Rounding(_SUMS, 2.0**-9, _LEAST),
    "bf16": Rounding(_SUMS, 2.0**-7 + 2.0**-16, _LEAST),
}
ARITHMETIC = {
    "float64": Rounding(DOUBLE),
    "float32": Rounding(2.0**-24, 0.0, _LEAST),
    "tf32": _PRODUCTS["tf32"],
    "bfloat16": Rounding(2.0**-8, 0.0, _LEAST),
}


def as_it_runs(graph: Graph) -> Rounding:
    """The rounding of a float32 module's pass on its device, under torch's present settings."""
    convolves = any(isinstance(node.op, Convolution) for node in graph.nodes)
    allowed = [setting.fp32_precision for setting in _settings(graph.device, convolves)]
    coarse = [_PRODUCTS[name] for name in allowed if name in _PRODUCTS]
    return max(coarse, key=lambda r: r.products, default=ARITHMETIC["float32"])


def _settings(device: torch.device, convolves: bool) -> list[Any]:
    """What decides how float32 products are taken. A convolution may be done as a matrix product.

    ``fp32_precision`` answers always; the older ``allow_tf32`` raises an error once both were used.
    """
    back = torch.backends
    if device.type == "cuda":
        return [back.cuda.matmul, back.cudnn.conv] if convolves else [back.cuda.matmul]
    return [back.mkldnn.matmul, back.mkldnn.conv] if convolves else [back.mkldnn.matmul]
