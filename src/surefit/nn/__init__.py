"""Networks: one trainer, and models that are ordinary ``torch.nn.Module``s. Needs the extra ``torch``."""
