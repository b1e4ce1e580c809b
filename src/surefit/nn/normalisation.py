"""What batch normalisation leaves unchanged, and how it disappears at inference (NN-14, NN-15, NN-19).

    zhat = (z - mean) / sqrt(var + eps),      out = gamma zhat + beta,

with mean and variance over the batch in training and running averages in evaluation. ``torch.nn.BatchNorm``
is used as it is. Two consequences are worth code:

* In evaluation it is affine, so a layer and the norm behind it are *one* layer: :func:`fold`. What has been
  folded computes the same function with fewer steps, and bounds for affine layers apply to it.
* In training, a layer before it may be scaled by any a > 0 without changing the output (but for eps). So its
  gradient is orthogonal to its weights, <grad_W L, W> = 0, and grad L(a W) = grad L(W) / a: weight decay in
  front of a norm changes only the effective step. :func:`scale_invariance` measures this.

References
----------
Ioffe and Szegedy, "Batch normalization", ICML 2015; van Laarhoven, "L2 regularization versus batch and weight
normalization", arXiv:1706.05350.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..certificate import Claim, Kind

__all__ = ["fold", "fold_pair", "scale_invariance"]

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def fold_pair(layer: Any, norm: Any) -> Any:
    """One layer that computes ``norm(layer(x))`` as in evaluation.

    Parameters
    ----------
    layer : Linear or Conv1d, Conv2d, Conv3d
    norm : BatchNorm
        With running averages.

    Returns
    -------
    A new layer of the kind of ``layer``, with a bias.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> layer, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
    >>> _ = norm(layer(torch.randn(50, 3)))                # moves the running averages
    >>> x = torch.randn(5, 3)
    >>> bool(torch.allclose(fold_pair(layer, norm)(x), norm.eval()(layer(x)), atol=1e-6))
    True
    """
    if not isinstance(layer, AFFINE) or not isinstance(norm, NORMS):
        raise TypeError(
            f"layer is {type(layer).__name__} and norm {type(norm).__name__}; "
            "give a linear or convolution layer and a batch norm."
        )
    if norm.running_mean is None or norm.running_var is None:
        raise ValueError(
            "norm has no running averages (track_running_stats=False), so it is not affine."
        )
    if norm.num_features != layer.weight.shape[0]:
        raise ValueError(
            f"norm has {norm.num_features} features, layer puts out {layer.weight.shape[0]}; they must agree."
        )
    with torch.no_grad():
        scale = (norm.running_var.double() + norm.eps).rsqrt()
        shift = -norm.running_mean.double() * scale
        if norm.affine:
            shift = shift * norm.weight.double() + norm.bias.double()
            scale = scale * norm.weight.double()
        folded = copy.deepcopy(layer)
        weight = layer.weight.double() * scale.reshape(-1, *[1] * (layer.weight.dim() - 1))
        bias = shift if layer.bias is None else layer.bias.double() * scale + shift
        folded.weight = nn.Parameter(weight.to(layer.weight.dtype))
        folded.bias = nn.Parameter(bias.to(layer.weight.dtype))
    return folded


def fold(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode, in which every batch norm that follows its layer in a Sequential is folded
    into it.

    Examples
    --------
    >>> from torch import nn
    >>> fold(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()))
    Sequential(
      (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
      (1): ReLU()
    )
    """
    return _folded(copy.deepcopy(module).eval())


def _folded(module: nn.Module) -> nn.Module:
    if not isinstance(module, nn.Sequential) or type(module).forward is not nn.Sequential.forward:
        for name, child in list(module.named_children()):
            setattr(module, name, _folded(child))
        return module
    parts: list[nn.Module] = []
    for child in module:
        if parts and isinstance(child, NORMS) and isinstance(parts[-1], AFFINE):
            parts[-1] = fold_pair(parts[-1], child)
        else:
            parts.append(_folded(child))
    return nn.Sequential(*parts)


def scale_invariance(weight: torch.Tensor, loss: Callable[[], torch.Tensor]) -> Claim:
    """That a loss does not change along a weight: the cosine of the weight and its gradient is 0 (NN-19).

    A layer in front of a norm passes; a layer without one does not. The bound, 1e-3, leaves room for the
    norm's eps and for float32.

    Parameters
    ----------
    weight : parameter
        Of the layer in front of the norm.
    loss : callable
        Without arguments; a scalar that depends on ``weight``.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> x, layer, norm = torch.randn(64, 3), nn.Linear(3, 4), nn.BatchNorm1d(4, eps=1e-8)
    >>> scale_invariance(layer.weight, lambda: norm(layer(x)).sigmoid().pow(3).mean()).status.name
    'HOLDS'
    """
    (gradient,) = torch.autograd.grad(loss(), [weight])
    inner = float((gradient.double() * weight.detach().double()).sum())
    size = float(gradient.double().norm() * weight.detach().double().norm())
    cosine = 0.0 if size == 0 else abs(inner) / size  # a NaN stays one, and fails
    level = "does not change" if cosine <= 1e-3 else "changes"
    statement = f"the weight and its gradient have cosine {cosine:.2e}: scaling it {level} the loss"
    return Claim.check("scale invariance", statement, Kind.EXACT, cosine, 1e-3, "NN-19")
