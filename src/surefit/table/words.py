"""What each kind of claim means to someone who has to act on it, and what it does not say."""

from __future__ import annotations

from ..certificate import Claim, Kind

__all__ = ["explained"]

_BY_NAME: dict[str, tuple[str, str]] = {
    "duality gap": (
        "No other coefficients have a smaller training loss with its penalty, but for the gap stated.",
        "That another kind of model would not do better, or that it does well on new rows.",
    ),
    "normal equations": (
        "The equations that define the best fit are solved to rounding.",
        "That the straight-line form is right for these data.",
    ),
    "complementary slackness": (
        "The rows that hold the boundary in place are the ones that optimality demands.",
        "That the boundary is right for new rows.",
    ),
    "exact neighbours": (
        "The neighbours that the model votes with are the nearest rows, decided in exact arithmetic.",
        "That near rows have the same target.",
    ),
    "generalisation": (
        "Rows drawn like these will be predicted with a loss in the stated interval, whichever of the "
        "models of the plan had been shipped.",
        "That rows of next year, or of another place, are drawn like these.",
    ),
    "selection excess": (
        "Choosing among the models that were measured has cost at most this much.",
        "That a model outside the plan could not be better.",
    ),
    "better than a constant": (
        "Whether the columns help at all: the model is compared with always predicting the same.",
        "That the model is good enough for its use, or that a constant is the best alternative.",
    ),
    "calibration": (
        "Of the rows that are given a probability of 0.3, about 30 % are positive, to the distance stated.",
        "That a single row's probability is right, or that every group's is: see fairness.",
    ),
    "prediction interval": (
        "9 of 10 predictions will be within the stated distance of the truth.",
        "That it is 9 of 10 in every part of the table; where the target varies more, it is fewer.",
    ),
    "sensitivity": (
        "Small errors in the measured columns move the prediction by no more than this.",
        "Anything about changes of categories, or larger ones.",
    ),
    "closed form": (
        "The formula that robustness is worked out by is the model's own: it gives the model's decisions.",
        "Anything about robustness by itself.",
    ),
    "certified accuracy": (
        "These decisions cannot be turned by any change within the set: that is proved for every single row.",
        "Anything about larger changes, other columns, or someone who changes the training rows.",
    ),
    "true adversarial risk": (
        "How often rows drawn like these can be turned by the worst change within the set.",
        "Anything about larger changes, other columns, or rows drawn elsewhere.",
    ),
    "independence": (
        "Whether the groups are decided on alike, whatever their true outcomes.",
        "Whether the groups deserve the same rates; if their base rates differ, equal rates mean unequal "
        "errors.",
    ),
    "separation": (
        "Whether those who are alike in outcome are treated alike: the same share of right and of wrong "
        "positives in each group.",
        "That the recorded outcomes are right for every group.",
    ),
    "sufficiency": (
        "Whether a decision means the same in each group: of those decided positive, the same share is.",
        "That errors fall evenly on the groups.",
    ),
    "error": (
        "Whether the model is wrong equally often in each group.",
        "Which errors they are: a refused good case and an accepted bad one count alike.",
    ),
    "incompatibility": (
        "Base rates differ this much, so not all criteria can be met at once: one has to be chosen.",
        "Which one to choose: that is a decision about values.",
    ),
    "proxies": (
        "Leaving the sensitive column out does not hide it: the other columns tell it to this extent.",
        "That these columns cause anything, or must not be used.",
    ),
}
_BY_SECTION: dict[str, tuple[str, str]] = {
    "optimality": (
        "A property of the fit that was worked out again from the training rows and the coefficients.",
        "Anything about rows that the fit has not seen.",
    ),
    "generalisation": (
        "A statement about rows to come, from rows that no fit has used.",
        "That rows of next year, or of another place, are drawn like these.",
    ),
    "robustness": (
        "How many decisions can be turned by changes that are too small to matter, within the set stated.",
        "Anything about larger changes, other columns, or someone who changes the training rows.",
    ),
    "fairness": (
        "How far apart the groups are, with the uncertainty of as many rows as there are.",
        "That the labels themselves are fair, or which of the criteria is the right one here.",
    ),
}


def explained(claim: Claim, section: str) -> dict[str, object]:
    """A claim as plain data, with what it means and what it does not."""
    name = claim.name.partition(" (")[0].partition(" at eps")[0]  # without its attribute or radius
    means, does_not = _BY_NAME.get(name, _BY_SECTION[section])
    if section == "fairness" and name == "calibration":
        means, does_not = _BY_SECTION[section]
    if claim.kind is Kind.EMPIRICAL:
        does_not = "That nobody else finds a better attack: it is an experiment, not a proof."
    return {**claim.to_dict(), "means": means, "does_not": does_not}
