"""Checkpoints of a run: data only, written whole or not at all, the last k kept.

A file is in the safetensors format: tensors, and a JSON document in which a tensor is named by its place. No
code is read from it and nothing is unpickled. It is written beside its place, synced and renamed, so that a
crash or a full disk leaves the one before it. A checksum of all that is in it tells a damaged
file, in which case the one before it is used, with a warning.

Examples
--------
>>> import tempfile, torch
>>> kept = Checkpoints(tempfile.mkdtemp(), keep=2)
>>> for step in (10, 20, 30):
...     _ = kept.save(step, {"model": {"w": torch.full((2,), float(step))}, "step": step})
>>> [path.name for path in kept.files()]
['step-000000000020.safetensors', 'step-000000000030.safetensors']
>>> kept.latest()["model"]["w"]
tensor([30., 30.])
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .._checkpoint import CheckpointError
from .._files import write_atomically

__all__ = ["CheckpointWarning", "Checkpoints", "fit_to", "read", "write"]

FORMAT = 2
_TENSOR = "tensor:"
_NAME = re.compile(r"step-(\d{12})\.safetensors")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or could not be read and an older one was used."""


class Checkpoints:
    """The checkpoints of one run, in a folder of their own.

    Parameters
    ----------
    folder : path
        Made where it is not there. What an interrupted write left is removed.
    keep : int, default=3
        How many to keep; older ones are deleted after a new one is in place.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3) -> None:
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep!r}.")
        self.folder, self.keep = Path(folder), int(keep)

    def prepare(self) -> None:
        """Make the folder and clear away parts of files; for the one process that writes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".surefit-*.tmp"):
            with contextlib.suppress(FileNotFoundError):
                left.unlink()

    def files(self) -> list[Path]:
        """The checkpoints, oldest first."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in found if _NAME.fullmatch(path.name))

    def save(self, step: int, state: Mapping[str, Any]) -> Path | None:
        """Write a state; where the disk refuses, warn and leave the ones before."""
        path = self.folder / f"step-{step:012d}.safetensors"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write(path, state)
        except OSError as error:
            last = self.files()
            warnings.warn(
                f"the checkpoint {path} was not written ({error}); training goes on, and "
                f"{last[-1].name if last else 'no checkpoint'} is the last one. Make room on the disk.",
                CheckpointWarning,
                stacklevel=2,
            )
            return None
        files = self.files()
        here = files.index(path)  # what comes after it is of a run that was given up
        for old in files[: max(0, here + 1 - self.keep)] + files[here + 1 :]:
            with contextlib.suppress(OSError):
                old.unlink()
        return path

    def latest(self) -> dict[str, Any] | None:
        """The newest state that can be read; None where there is no file."""
        found = self.files()
        for path in reversed(found):
            try:
                return read(path)
            except CheckpointError as error:
                warnings.warn(
                    f"{error} The one before it is used.", CheckpointWarning, stacklevel=2
                )
        if found:
            raise CheckpointError(
                f"none of the {len(found)} checkpoints in {self.folder} can be read: delete them to "
                "start afresh, or pass resume=False."
            )
        return None


def write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """A tree of dicts, lists, numbers, texts and tensors as one file, atomically."""
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    tree = _without_tensors(state, tensors)
    document = {"format": FORMAT, "checksum": _checksum(tree, tensors), "tree": tree}
    blob = save(tensors, {"surefit": json.dumps(document)})
    write_atomically(os.path.abspath(path), [blob])


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tree that :func:`write` wrote, with tensors on the processor."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        blob = Path(path).read_bytes()
        tensors = load(blob)
        size = struct.unpack("<Q", blob[:8])[0]
        document = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["surefit"])
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}, this version reads {FORMAT}")
        if document["checksum"] != _checksum(document["tree"], tensors):
            raise ValueError("its checksum does not match its contents")
        tree = _with_tensors(document["tree"], tensors)
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, struct.error) as error:
        raise CheckpointError(f"the checkpoint {path} cannot be read: {error}.") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"the checkpoint {path} cannot be read: it holds no state.")
    return tree


def fit_to(expected: Mapping[str, Any], found: Mapping[str, Any], what: str = "module") -> None:
    """Raise an error that says which tensors differ, if a checkpoint is of another architecture."""
    differences = [f"{name}: not in the checkpoint" for name in expected if name not in found]
    differences += [f"{name}: not in the {what}" for name in found if name not in expected]
    differences += [
        f"{name}: {tuple(tensor.shape)} in the {what}, {tuple(found[name].shape)} in the checkpoint"
        for name, tensor in expected.items()
        if name in found and getattr(tensor, "shape", ()) != getattr(found[name], "shape", ())
    ]
    if differences:
        more = f" and {len(differences) - 10} more" if len(differences) > 10 else ""
        raise CheckpointError(
            f"the checkpoint is of another architecture: {'; '.join(differences[:10])}{more}. Build the "
            "module as it was, name another folder, or pass resume=False."
        )


def _checksum(tree: Any, tensors: Mapping[str, torch.Tensor]) -> int:
    value = zlib.crc32(json.dumps(tree).encode())
    for name in sorted(tensors):
        kind = f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}"
        value = zlib.crc32(kind.encode(), value)
        flat = tensors[name].detach().contiguous().reshape(-1)
        value = zlib.crc32(flat.view(torch.uint8).numpy(), value) if flat.numel() else value
    return value


def _without_tensors(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        name = f"{len(tensors):06d}"
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return _TENSOR + name
    if isinstance(value, Mapping):
        return {str(key): _without_tensors(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_tensors(item, tensors) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str) and not value.startswith(_TENSOR):
        return value
    raise TypeError(f"a checkpoint holds numbers, texts and tensors, not {value!r}.")


def _with_tensors(tree: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(tree, str) and tree.startswith(_TENSOR):
        return tensors[tree[len(_TENSOR) :]]
    if isinstance(tree, dict):
        return {key: _with_tensors(item, tensors) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_with_tensors(item, tensors) for item in tree]
    return tree
