"""Two fits that show their work, on data that come with scikit-learn. Run by `make demo`."""

from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

import surefit
from surefit.linear_model import Lasso, LogisticRegression


def main() -> None:
    console = Console()

    console.rule("A Lasso on the diabetes table: 442 patients, 10 measurements")
    X, y = load_diabetes(return_X_y=True)
    lasso = Lasso(alpha=0.1, tol=1e-8).fit(X, y)
    console.print(f"{(lasso.coef_ != 0).sum()} of {X.shape[1]} coefficients are not zero.")
    console.print(lasso.certificate_)

    console.rule("A logistic regression on 569 tumours, 30 measurements each")
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    logistic = LogisticRegression(C=1.0, tol=1e-8).fit(X, y)
    console.print(f"It calls {logistic.score(X, y):.1%} of the tumours right.")
    console.print(logistic.certificate_)

    console.rule("Anyone can verify it; then one coefficient changes by 1 %")
    console.print(surefit.verify(logistic, X, y, tol=1e-8))
    logistic.coef_[0, 0] *= 1.01
    console.print(surefit.verify(logistic, X, y, tol=1e-8))


if __name__ == "__main__":
    main()
