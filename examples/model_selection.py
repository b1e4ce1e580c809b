"""Forty models tried on 569 tumours, and a sentence about the chosen one that may be quoted."""

import numpy as np
from rich.console import Console
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surefit
from surefit.linear_model import LogisticRegression
from surefit.model_selection import GridSearchCV, HoldOut


def main() -> None:
    console = Console()
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": np.logspace(-2, 2, 40)}

    console.rule(
        "A quarter of the rows kept aside: 40 models compete for them, none is fitted on them"
    )
    choice = HoldOut(model, grid, random_state=0).fit(X, y)
    console.print(choice.certificate_["generalisation"].statement)
    console.print(choice.certificate_["selection excess"].statement)

    console.rule("The search inside the training part: one model meets the rows kept aside")
    search = GridSearchCV(model, grid, cv=5, certify=False)
    single = HoldOut(search, random_state=0).fit(X, y)
    console.print(single.certificate_["generalisation"].statement)

    console.rule("Cross-validation alone: the claim is about the fold models")
    search = GridSearchCV(model, grid, cv=5).fit(X, y)
    console.print(search.certificate_["generalisation"].statement)
    console.print(search.certificate_["best_estimator_: generalisation"].statement)

    console.rule("A stranger verifies the first choice, then looks at other rows")
    console.print(surefit.verify(choice, X, y).ok)
    console.print(surefit.verify(choice, X[::-1], y[::-1]).ok)


if __name__ == "__main__":
    main()
