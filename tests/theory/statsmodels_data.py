"""Standard errors, likelihoods and information criteria as statsmodels gives them, on bundled data.

``RECORDED`` is what ``python -m tests.theory.statsmodels_data`` prints with statsmodels 0.15.0 and
scikit-learn 1.9.1; ``compute`` made it, and a test compares with it anew where statsmodels is installed.
Numbers have 12 digits.
"""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import numpy as np
import sklearn.datasets

__all__ = ["HUBER_SCALE", "RECORDED", "compute", "data"]

Table = dict[str, dict[str, np.ndarray]]
# what HuberRegressor(alpha=0) estimates on the diabetes data: mean(min((e / scale)^2, 1.35^2)) = 1
HUBER_SCALE = 37.32918668314125


def data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights 1, 2, 3, 4, 5, 1, ... of a case."""
    if name == "diabetes":
        X, y = sklearn.datasets.load_diabetes(return_X_y=True)
    elif name == "cancer":  # four features, which leave the classes overlapping
        X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
        X = X[:, :4]
    elif name == "wine":  # two features: with more the classes separate
        X, y = sklearn.datasets.load_wine(return_X_y=True)
        X = X[:, :2]
    else:  # the iris whose classes overlap
        X, y = sklearn.datasets.load_iris(return_X_y=True)
        X, y = X[y > 0], y[y > 0]
    return X, y, 1.0 + np.arange(len(y)) % 5


def compute() -> Table:
    """The same with statsmodels."""
    import statsmodels.api as sm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gradient of exactly 0 is asked for, and not reached
        return _compute(sm)


def _compute(sm: Any) -> Table:
    found: Table = {}

    def keep(name: str, result: Any, fields: str) -> None:
        found[name] = {
            field: np.ravel(np.asarray(getattr(result, field)), order="F")
            for field in fields.split()
        }
        if "pvalues" in fields:
            found[name]["conf_int"] = np.asarray(result.conf_int(0.1)).ravel()

    basic, linear = "params bse pvalues llf aic bic ", "rsquared scale df_resid"
    X, y, s = data("diabetes")
    A = sm.add_constant(X)
    keep("ols", sm.OLS(y, A).fit(), basic + linear)
    keep("ols without intercept", sm.OLS(y, X).fit(), "bse llf aic bic " + linear)
    for kind in ("HC0", "HC1", "HC2", "HC3"):
        keep(f"ols {kind}", sm.OLS(y, A).fit(cov_type=kind, use_t=True), "bse")
    keep("wls", sm.WLS(y, A, weights=s).fit(), basic + linear)
    keep("wls HC3", sm.WLS(y, A, weights=s).fit(cov_type="HC3", use_t=True), "bse")
    for q in (0.25, 0.5):
        result = sm.QuantReg(y, A).fit(q=q, vcov="iid", max_iter=10_000, p_tol=1e-10)
        keep(f"quantile {q}", result, "params bse bandwidth sparsity")

    class Fixed(sm.robust.scale.HuberScale):
        def __call__(self, *_: Any) -> float:
            return HUBER_SCALE

    norm = sm.robust.norms.HuberT(t=1.35)
    options: dict[str, Any] = {"scale_est": Fixed(), "tol": 1e-13, "maxiter": 1000}
    keep("huber", sm.RLM(y, A, M=norm).fit(cov="H1", **options), "params bse")
    norm, options["scale_est"] = sm.robust.norms.TukeyBiweight(c=4.685), Fixed()
    keep("tukey", sm.RLM(y, A, M=norm).fit(cov="H1", **options), "params bse")

    X, y, s = data("cancer")
    A = sm.add_constant(X)
    options = {"method": "newton", "tol": 1e-14, "maxiter": 30, "disp": 0}
    keep("logit", sm.Logit(y, A).fit(**options), basic + "prsquared")
    keep("logit HC0", sm.Logit(y, A).fit(cov_type="HC0", **options), "bse")
    glm = sm.GLM(y, A, family=sm.families.Binomial(), freq_weights=s)
    keep("glm", glm.fit(tol=1e-14, maxiter=30), "params bse llf aic bic_llf")
    X, y, _ = data("iris")
    keep("logit iris", sm.Logit(y - 1, sm.add_constant(X)).fit(**options), basic + "prsquared")
    X, y, _ = data("wine")
    keep("mnlogit", sm.MNLogit(y, sm.add_constant(X)).fit(**options), basic + "prsquared")
    return found


def _read(text: str) -> Table:
    """Lines ``case | field | numbers``; a line without a bar continues the numbers."""
    found: Table = {}
    case, field = "", ""
    words: list[str] = []
    for line in [*text.strip().splitlines(), "||"]:
        if "|" in line:
            if words:
                found.setdefault(case, {})[field] = np.array(words, dtype=np.float64)
            case, field, rest = (part.strip() for part in line.split("|"))
            words = rest.split()
        else:
            words += line.split()
    return found


RECORDED = _read("""
ols | params | 152.133484163 -10.0098662998 -239.815643672 519.845920054 324.384645502
    -792.175638552 476.739021005 101.043267938 177.063237671 751.273699557 67.6266921837
ols | bse | 2.57585448512 59.7492465215 61.2223439435 66.5334447386 65.4219920549 416.679870341
    339.030494822 212.531456722 161.4757952 171.899981923 65.9842819075
ols | pvalues | 1.01008192917e-208 0.8670306337 0.000104167119277 4.29639141952e-14
    1.02427839221e-06 0.0579476053692 0.160390240015 0.634723255775 0.273458693661
    1.55589908654e-05 0.305989526196
ols | llf | -2385.99286212
ols | aic | 4793.98572425
ols | bic | 4838.99013295
ols | rsquared | 0.51774842222
ols | scale | 2932.6816372
ols | df_resid | 431
ols | conf_int | 147.887454099 156.379514226 -108.5003278 88.4805952001 -340.734354119
    -138.896933226 410.172408521 629.519431588 216.543248918 432.226042087 -1479.0293667
    -105.3219104 -82.1177318665 1035.59577388 -249.292886482 451.379422358 -89.1129321755
    443.239407518 467.914334593 1034.63306452 -41.1415811445 176.394965512
ols without intercept | bse | 179.966538119 184.40355212 200.400748392 197.053019284 1255.0523753
    1021.17010711 640.151177371 486.369980277 517.76794605 198.746653331
ols without intercept | llf | -2873.86057371
ols without intercept | aic | 5767.72114741
ols without intercept | bic | 5808.63424623
ols without intercept | rsquared | 0.105597360594
ols without intercept | scale | 26606.2445861
ols without intercept | df_resid | 432
ols HC0 | bse | 2.54360005482 56.7033854721 58.1357623022 66.5422871565 64.4979553066
    388.914893316 307.70615706 197.883987535 155.485937864 160.142503227 62.1457118859
ols HC1 | bse | 2.57585448512 57.4224196579 58.8729599168 67.3860847334 65.3158294845 393.84657599
    311.608062462 200.393279541 157.457596237 162.173209744 62.9337581546
ols HC2 | bse | 2.57446715038 57.4591169967 58.8824830146 67.5534507549 65.4196511442
    399.805777928 316.839136164 203.041015678 158.914686621 163.582482355 63.0143382022
ols HC3 | bse | 2.60601151838 58.2296621321 59.6459111435 68.5907693437 66.3616559026
    411.308160668 326.508385992 208.454892533 162.474731442 167.186504521 63.9013129182
wls | params | 152.409861452 -24.6130167248 -207.627463892 521.086826646 313.265995596
    -958.404869772 623.249159068 160.589321517 131.455972769 864.693224087 82.759249543
wls | bse | 2.59294647215 61.0451696575 62.0169716009 67.5470781951 67.4236446832 399.926053483
    324.463930527 207.545161423 165.599079502 172.288566716 66.0934864405
wls | pvalues | 6.36178985966e-208 0.687005802637 0.000885696668136 8.51680189299e-14
    4.49809010477e-06 0.016979760622 0.0554089839708 0.439499265824 0.42773665984
    7.61772166611e-07 0.211192664177
wls | llf | -2419.52867942
wls | aic | 4861.05735885
wls | bic | 4906.06176755
wls | rsquared | 0.506245528427
wls | scale | 8867.5363045
wls | df_resid | 431
wls | conf_int | 148.135657013 156.684065891 -125.239673661 76.0136402111 -309.856035956
    -105.398891828 409.742445056 632.431208236 202.125081401 424.40690979 -1617.6416613
    -299.168078239 88.4038828827 1158.09443525 -181.527440127 502.706083161 -141.517005362
    404.428950901 580.693317228 1148.69313095 -26.1890361784 191.707535264
wls HC3 | bse | 2.93810898419 66.0117111612 67.6485169243 79.1443921372 78.5002858348
    457.757802783 360.072384639 234.878193097 186.823203608 188.643331413 75.2539494486
quantile 0.25 | params | 113.471789055 71.5596688246 -216.071891184 528.864856606 220.093162025
    296.368621957 -512.366065907 -169.031444768 274.841995694 308.740451773 -18.0556076772
quantile 0.25 | bse | 3.01799693659 70.0051357742 71.7310886696 77.9538337906 76.6516015357
    488.202489501 397.224688232 249.012236142 189.192929206 201.406415557 77.3104077929
quantile 0.25 | bandwidth | 33.2920434847
quantile 0.25 | sparsity | 146.530925702
quantile 0.5 | params | 151.854452004 9.41261825698 -326.395872832 465.868029531 407.09843723
    -856.666749254 414.422232155 147.113074115 257.870213221 762.218838859 50.8085080008
quantile 0.5 | bse | 3.33607445266 77.3832279881 79.2910852464 86.1696677829 84.7301886025
    539.655899979 439.089622097 275.256528369 209.132650234 222.633359695 85.4584288128
quantile 0.5 | bandwidth | 34.9079113104
quantile 0.5 | sparsity | 140.273897745
huber | params | 151.30081107 -30.0254872322 -284.188469538 530.21494942 340.374268013
    -761.503760727 423.023520223 72.9875378126 173.427965573 780.093171665 42.7774605645
huber | bse | 2.84758131701 66.0521931976 67.6806876336 73.5520563325 72.3233565302 460.635420522
    374.794814121 234.951395328 178.509873216 190.033707163 72.9449623267
tukey | params | 152.042712967 -26.9152921782 -302.83287795 541.191341789 347.828989456
    -814.581094045 446.951831541 92.6092421914 174.315040556 816.889828949 30.3741457197
tukey | bse | 2.94976530134 68.4224420241 70.1093741415 76.1914338727 74.9186428128 477.165084596
    388.244132384 243.382504759 184.915607788 196.852968562 75.5625546122
logit | params | -1.77290702523 9.4287379494 -0.237609640952 -1.15065585436 -0.0327701182614
logit | bse | 6.87012322047 1.63959230795 0.0460286566772 0.164359154692 0.0118246154906
logit | pvalues | 0.796360261566 8.88957139033e-09 2.44049888121e-07 2.54391387077e-12
    0.00558248194366
logit | llf | -105.683358682
logit | aic | 221.366717363
logit | bic | 243.086119534
logit | prsquared | 0.718717774105
logit | conf_int | -13.073254122 9.52744007156 6.73184859494 12.1256273039 -0.313320043831
    -0.161899238073 -1.42100260608 -0.880309102645 -0.0522198799383 -0.0133203565844
logit HC0 | bse | 5.26777844051 1.75189809241 0.0421126466513 0.213493912279 0.00943243299128
glm | params | -1.07109474403 10.1081246119 -0.266974556148 -1.24841300859 -0.0340622157514
glm | bse | 4.31381310095 1.03100347554 0.0278802741612 0.102161964568 0.00739737749244
glm | llf | -290.952491508
glm | aic | 591.904983015
glm | bic_llf | 619.111584964
logit iris | params | -42.637803813 -2.46522019519 -6.68088701408 9.42938515393 18.2861368879
logit iris | bse | 25.7076608332 2.39430101853 4.4795645666 4.73720770032 9.74261213983
logit iris | pvalues | 0.0972036572982 0.303188426775 0.135852734821 0.0465365059626
    0.0605285906007
logit iris | llf | -5.94927339568
logit iris | aic | 21.8985467914
logit iris | bic | 34.9243977213
logit iris | prsquared | 0.914170127752
logit iris | conf_int | -84.9231429749 -0.352464651147 -6.40349490954 1.47305451916 -14.0491150386
    0.687341010458 1.63737188644 17.2213984214 2.26096597368 34.311307802
mnlogit | params | 66.3182881277 -5.08805852566 0.0554463803397 25.93894311 -2.17401656517
    1.20961375578
mnlogit | bse | 9.48384804034 0.725631634661 0.33533278828 7.18437461218 0.54049628048
    0.262512226439
mnlogit | pvalues | 2.69527352193e-12 2.3509843924e-12 0.86867060954 0.000305646901808
    5.76423790661e-05 4.06877886177e-06
mnlogit | llf | -94.0984641436
mnlogit | aic | 200.196928287
mnlogit | bic | 219.287629589
mnlogit | prsquared | 0.513237252334
mnlogit | conf_int | 50.7187462811 81.9178299743 -6.28161635176 -3.89450069955 -0.496126972699
    0.607019733378 14.1216984717 37.7561877482 -3.06305383247 -1.28497929787 0.777819568003
    1.64140794356
""")


def _print() -> None:
    for case, table in compute().items():
        for field, values in table.items():
            line = f"{case} | {field} | " + " ".join(f"{v:.12g}" for v in values)
            print("\n".join(textwrap.wrap(line, 98, subsequent_indent="    ")))


if __name__ == "__main__":
    _print()
