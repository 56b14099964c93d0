"""Metrics over matrices of zeros and ones."""


def f1_macro(truth, predicted):
    both = (truth * predicted).sum(0)
    total = truth.sum(0) + predicted.sum(0)
    return (2 * both / total.clamp(min=1)).mean().item()


def subset_accuracy(truth, predicted):
    return (truth == predicted).all(1).float().mean().item()
