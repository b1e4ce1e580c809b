"""Drop-in: scikit-learn's own test modules pass with surefit's classes; see ``docs/parity.md``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import sklearn.svm._bounds
from sklearn.linear_model import Lars
from sklearn.linear_model._base import _rescale_data
from sklearn.multiclass import OutputCodeClassifier
from sklearn.svm import NuSVC

import surefit.svm
from surefit.linear_model import Lasso, Ridge
from surefit.multiclass import OneVsRestClassifier

from .dropin import DOCS, MODULES, arguments, examine
from .dropin_rules import SHARED, home_of, judge, swap_in


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_scikit_learns_own_tests_pass(module: str) -> None:
    report = examine(module)
    if not report.counted:
        pytest.skip("surefit has none of the classes that this module is about")
    assert not report.unargued(), "argue these in exceptions.toml, or fix them"
    assert not report.stale(), "these exceptions no longer fail: delete them"
    assert report.rate >= 0.95
    assert report.row() in DOCS.read_text(encoding="utf8"), (
        "the document is out of date: python -m tests.parity.dropin --write-docs"
    )


def test_the_document_holds_the_table_of_exceptions() -> None:
    assert arguments() in DOCS.read_text(encoding="utf8")


def test_all_functions_and_classes_of_the_goal_are_swapped() -> None:
    wanted = "ElasticNet Lasso LinearRegression LogisticRegression Perceptron Ridge"
    assert set(wanted.split()) <= set(SHARED)
    assert {"enet_path", "lasso_path", "ridge_regression"} <= set(SHARED)
    assert {"OneVsOneClassifier", "OneVsRestClassifier"} <= set(SHARED)


def test_the_home_of_a_module_is_the_package_it_is_about() -> None:
    assert home_of("sklearn.linear_model.tests.test_ridge") == "sklearn.linear_model"
    assert home_of("sklearn.svm.tests.test_sparse") == "sklearn.svm"
    assert home_of("sklearn.tests.test_multiclass") == "sklearn.multiclass"
    with pytest.raises(ValueError, match="not in SUITES"):
        home_of("sklearn.tree.tests.test_tree")


def test_a_public_name_from_a_private_file_is_swapped_too() -> None:
    module = ModuleType("sklearn.svm.tests.test_bounds")
    module.l1_min_c = sklearn.svm._bounds.l1_min_c
    module.set_seed_wrap = kept = object()
    swap_in(module)
    assert module.l1_min_c is surefit.svm.l1_min_c
    assert module.set_seed_wrap is kept


# ------------------------------------------------------------------ the rule, on tests written for it


def uses_ours() -> Any:
    return Ridge()


def uses_absent() -> Any:
    return Ridge(), Lars()


def uses_absent_through_a_helper() -> Any:
    return uses_ours(), uses_absent()


def uses_private() -> Any:
    return Ridge(), _rescale_data


def uses_a_private_attribute() -> Any:
    return Ridge()._parameter_constraints


def compares_with_absent(model: Any) -> Any:
    return isinstance(model, Lars) or model in (Lars, Ridge)


def uses_absent_of_another_package() -> Any:
    return Ridge(), OneVsRestClassifier(NuSVC()), OutputCodeClassifier


class Tool:
    """Its private attribute is its own."""

    def __init__(self, model: Any) -> None:
        self._model = model


def uses_a_tool() -> Any:
    return Tool(Ridge())


@pytest.mark.parametrize(
    ("test", "params", "reason"),
    [
        (uses_ours, {}, ""),
        (uses_absent, {}, "absent"),
        (uses_absent_through_a_helper, {}, "absent"),
        (uses_private, {}, "private"),
        (uses_a_private_attribute, {}, "private"),
        (compares_with_absent, {"model": Lasso()}, ""),
        (compares_with_absent, {"model": Lars}, "absent"),
        (compares_with_absent, {"model": [{"inside": Lars()}]}, "absent"),
        (compares_with_absent, {"model": 1}, "none of ours"),
        (uses_absent_of_another_package, {}, ""),
        (uses_a_tool, {}, ""),
        (uses_ours, {"array_namespace": "torch"}, "arrays"),
        (uses_ours, {"array_namespace": "numpy"}, ""),
    ],
)
def test_the_rule_that_says_which_tests_count(
    test: Any, params: dict[str, Any], reason: str
) -> None:
    verdict = judge(test, [], params)
    assert verdict.reason == reason
    assert verdict.counted == (reason == "")


def test_each_module_is_judged_by_the_package_it_is_about() -> None:
    home = "sklearn.multiclass"
    assert judge(uses_ours, [], {}, home).reason == "none of ours"
    assert judge(uses_absent_of_another_package, [], {}, home).names == ("OutputCodeClassifier",)
    assert judge(uses_ours, [], {"model": OneVsRestClassifier}, home).counted
