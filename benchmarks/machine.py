"""What the figures were measured on, and equal threads for everybody."""

from __future__ import annotations

import math
import os
import platform
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = [
    "cores",
    "describe",
    "device_name",
    "environment",
    "finite",
    "limit_threads",
    "peak_memory",
]

PACKAGES = (
    "numpy scipy scikit-learn numba threadpoolctl torch "
    "scikit-learn-intelex celer skglm liblinear-official statsmodels"
).split()
VARIABLES = "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMBA_NUM_THREADS".split()


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(threads: int) -> dict[str, str]:
    """The environment of a process with this many threads in each pool, set before it starts."""
    return os.environ | dict.fromkeys(VARIABLES, str(threads))


def limit_threads(threads: int) -> AbstractContextManager[Any]:
    """The same limit on the pools that are already loaded, and on oneDAL's where it is there."""
    from threadpoolctl import threadpool_limits

    try:
        import daal4py

        daal4py.daalinit(threads)
    except ImportError:
        pass
    return threadpool_limits(limits=threads)


def describe(threads: int) -> dict[str, Any]:
    """Processor, cores, memory, versions, threads."""
    return {
        "processor": _cpuinfo("model name") or platform.processor() or platform.machine(),
        "cores": cores(),
        "threads": threads,
        "memory GB": round(_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": _versions(),
        "load at start": round(os.getloadavg()[0], 2),
    }


def device_name(device: str) -> str:
    """The name of a GPU, or the device as it was given."""
    import torch

    return str(torch.cuda.get_device_name(device)) if device.startswith("cuda") else device


def peak_memory() -> float:
    """The most memory this process held, in MB; not getrusage's, which a child inherits from its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("this system does not say how much memory a process held (VmHWM).")


def _cpuinfo(field: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    lines = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(field)]
    return lines[0] if lines else ""


def _memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return float("nan")


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def finite(value: Any) -> Any:
    """Plain JSON: numpy numbers as Python's, what is not finite as null."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    return float(value) if math.isfinite(value) else None
