import json
from typing import Dict, List, Tuple

import torch


def read(path: str) -> List[Tuple[str, str]]:
    with open(path, encoding="utf-8") as handle:
        return [(entry["question"], entry["answer"]) for entry in json.load(handle)]


class Words:
    def __init__(self, examples) -> None:
        self.index: Dict[str, int] = {"<unknown>": 0}
        for question, _ in examples:
            for word in question.split():
                self.index.setdefault(word, len(self.index))
        self.answers = sorted({answer for _, answer in examples})

    def encode(self, question: str) -> torch.Tensor:
        return torch.tensor([self.index.get(word, 0) for word in question.split()])

    def label(self, answer: str) -> int:
        return self.answers.index(answer)
