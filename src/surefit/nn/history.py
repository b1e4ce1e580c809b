"""What happened in a run: losses, learning rates, validation and speed, epoch by epoch.

Examples
--------
>>> history = History()
>>> history.add(step=2, epoch=1, loss=0.5, lr=0.1, seconds=1.0, samples_per_second=100.0)
>>> history.loss, len(history)
([0.5], 1)
>>> print(history)
epoch  step  loss  lr   seconds
    1     2   0.5  0.1      1.0
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["History"]


@dataclass
class History:
    """One entry an epoch in each list (``step_loss``: one a step).

    Attributes
    ----------
    steps, epochs : list of int
        Steps and epochs done when the entry was made; a run may end within an epoch.
    loss : list of float
        Mean training loss of the epoch, each batch at the weights it was met with.
    lr : list of float
        Learning rate of the last step of the epoch.
    validation : list of float
        Loss on the validation data; empty without them.
    metrics : dict of str to list of float
        The metrics on the validation data, or on the training data (at the end of the epoch) without them.
    seconds : list of float
        Time spent since the first step, also in runs that were resumed.
    samples_per_second : list of float
        Speed in the epoch, without validation and checkpoints.
    step_loss : list of float
        Loss of each step.
    """

    steps: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    samples_per_second: list[float] = field(default_factory=list)
    step_loss: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.epochs)

    def add(
        self,
        *,
        step: int,
        epoch: int,
        loss: float,
        lr: float,
        seconds: float,
        samples_per_second: float,
        validation: float | None = None,
        metrics: dict[str, float] | None = None,
    ) -> None:
        """One more entry."""
        self.steps.append(step)
        self.epochs.append(epoch)
        self.loss.append(loss)
        self.lr.append(lr)
        self.seconds.append(seconds)
        self.samples_per_second.append(samples_per_second)
        if validation is not None:
            self.validation.append(validation)
        for name, value in (metrics or {}).items():
            self.metrics.setdefault(name, []).append(value)

    def last(self) -> dict[str, float]:
        """The newest entry."""
        lists: dict[str, list[Any]] = {"epoch": self.epochs, "step": self.steps, "loss": self.loss}
        lists |= {"validation": self.validation} | self.metrics
        lists |= {"lr": self.lr, "seconds": self.seconds}
        return {name: values[-1] for name, values in lists.items() if values}

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> History:
        """The inverse of :meth:`to_dict`."""
        return cls(**found)

    def __str__(self) -> str:
        lists: dict[str, list[Any]] = {"epoch": self.epochs, "step": self.steps, "loss": self.loss}
        lists |= {"validation": self.validation} | self.metrics
        lists |= {"lr": self.lr, "seconds": [round(s, 2) for s in self.seconds]}
        shown = {name: values for name, values in lists.items() if len(values) == len(self)}
        cells = [list(shown)]
        for row in zip(*shown.values()):
            cells.append([f"{v:.4g}" if isinstance(v, float) and v % 1 else str(v) for v in row])
        widths = [max(len(line[k]) for line in cells) for k in range(len(shown))]
        head = "  ".join(text.ljust(w) for text, w in zip(cells[0], widths)).rstrip()
        body = ["  ".join(text.rjust(w) for text, w in zip(line, widths)) for line in cells[1:]]
        return "\n".join([head, *body])

    def plot(self, ax: Any = None) -> Any:
        """Training and validation loss by epoch, with matplotlib; returns their axes.

        Metrics, where there are any, stand in axes below, which are not drawn where ``ax`` is given.
        """
        from matplotlib.ticker import MaxNLocator

        below = None
        if ax is None:
            import matplotlib.pyplot as plt

            if self.metrics:
                _, (ax, below) = plt.subplots(
                    2, 1, sharex=True, figsize=(6.0, 5.4), layout="constrained"
                )
            else:
                _, ax = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
        ax.plot(self.epochs, self.loss, marker=".", color="#1f5fa8", label="training")
        if self.validation:
            ax.plot(self.epochs, self.validation, marker=".", color="#c4561c", label="validation")
            best = min(range(len(self.validation)), key=self.validation.__getitem__)
            lowest = {"color": "#999999", "linewidth": 0.8, "linestyle": ":"}
            ax.axvline(self.epochs[best], **lowest, label="lowest on validation rows")
            ax.legend(frameon=False)
        ax.set_ylabel("loss")
        if below is not None:
            where = "validation rows" if self.validation else "training rows"
            for name, values in self.metrics.items():
                below.plot(self.epochs, values, marker=".", label=name)
            below.set_ylabel(f"on {where}")
            below.legend(frameon=False)
        last = ax if below is None else below
        last.set_xlabel("epoch")
        last.xaxis.set_major_locator(MaxNLocator(integer=True))
        return ax
