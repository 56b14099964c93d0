from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Hypothesis:
    words: tuple
    logp: float

    def normalized(self):
        return self.logp / len(self.words) ** 0.7


@torch.no_grad()
def search(model, source, size=4, limit=8, end=2):
    alive, finished = [Hypothesis((1,), 0.0)], []
    for _ in range(limit):
        grown = []
        for hypothesis in alive:
            scores = model(source, torch.tensor([hypothesis.words]))[0, -1].log_softmax(-1)
            top = scores.topk(size)
            for value, word in zip(top.values.tolist(), top.indices.tolist()):
                grown.append(Hypothesis(hypothesis.words + (word,), hypothesis.logp + value))
        grown.sort(key=lambda h: h.logp, reverse=True)
        finished += [h for h in grown[:size] if h.words[-1] == end]
        alive = [h for h in grown[:size] if h.words[-1] != end]
        if not alive:
            break
    return max(finished or alive, key=lambda h: h.normalized).words
