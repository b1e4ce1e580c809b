"""temporary"""
def gaussian_claims(model, design, proba, *, full):
    return []
