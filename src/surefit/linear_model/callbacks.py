"""scikit-learn's fit callbacks (progress bars, score monitors) around surefit's one loop.

An estimator that supports them inherits :class:`sklearn.callback.CallbackSupportMixin`, wraps its steps in
:meth:`FitTasks.watch`, and calls :meth:`FitTasks.finish` at the end. The tasks are scikit-learn's: one for
the fit, one for each iteration, and an empty one at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..iterate import Iterate

__all__ = ["FitTasks"]


class FitTasks:
    """What the callbacks of one fit are told.

    Parameters
    ----------
    estimator : CallbackSupportMixin
    X, y, sample_weight
        The training data.
    attributes : callable
        Maps a point of the solver to the fitted attributes that it stands for.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        attributes: Callable[[Any], dict[str, Any]],
    ) -> None:
        self.estimator, self.attributes = estimator, attributes
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.stop = False  # whether a callback asked for the end
        self.root = estimator._init_callback_context(max_subtasks=max(estimator.max_iter, 1) + 1)
        self.root.call_on_fit_task_begin(**self.data)
        self.current: Any = None

    def watch(
        self, steps: Iterator[Iterate], start: Any, *, looks: bool = True
    ) -> Iterator[Iterate]:
        """The same steps, each of them a task; with ``looks``, one that costs nothing is none."""
        self._begin(start)
        for iterate in steps:
            if looks and iterate.cost == 0:
                yield iterate
                continue
            attributes = self.attributes(iterate.x)
            self.stop |= self.current.call_on_fit_task_end(
                **self.data, reconstruction_attributes=attributes
            )
            self._begin(iterate.x)
            yield iterate

    def _begin(self, point: Any) -> None:
        self.current = self.root.subcontext(task_name="iteration")
        self.current.call_on_fit_task_begin(
            **self.data, reconstruction_attributes=self.attributes(point)
        )

    def finish(self) -> None:
        """End the iteration that was not made, and the fit."""
        self.current.call_on_fit_task_end(estimator=self.estimator)
        self.root.call_on_fit_task_end(**self.data, reconstruction_attributes={})
