"""Triton kernels, for tensors on a GPU; imported where such a tensor is met, not before."""
