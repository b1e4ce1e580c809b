"""Which of the parameters of a function go to the estimator, the splitter and the scorer."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _manual_routing,
    _routing_enabled,
    process_routing,
)

__all__ = ["check_groups", "route"]


def check_groups(groups: Any) -> None:
    """Where metadata are routed, groups are metadata."""
    if groups is not None and _routing_enabled():
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled via "
            "`sklearn.set_config(enable_metadata_routing=True)`. When routing is enabled, pass `groups` "
            "alongside other metadata via the `params` argument instead."
        )


def route(
    owner: str,
    estimator: Any,
    splitter: Any,
    scorer: Any,
    params: dict[str, Any] | None,
    groups: Any,
    *,
    partial: bool = False,
) -> Any:
    """Routed parameters of ``owner``, as scikit-learn's function of that name routes them."""
    params = {} if params is None else params
    methods = ["fit", "partial_fit"] if partial else ["fit"]
    if not _routing_enabled():
        return _manual_routing(
            {
                "splitter": {"split": {"groups": groups}},
                "estimator": dict.fromkeys(methods, params),
                "scorer": {},
            }
        )
    fits = MethodMapping()
    for method in methods:
        fits.add(caller="fit", callee=method)
    router = MetadataRouter(owner=owner)
    router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=estimator, method_mapping=fits)
    router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    try:
        return process_routing(router, "fit", **params)
    except UnsetMetadataPassedError as error:  # the user called the function, not a fit
        raise UnsetMetadataPassedError(
            message=str(error).replace(f"{owner}.fit", owner),
            unrequested_params=error.unrequested_params,
            routed_params=error.routed_params,
        ) from error
