from collections import Counter

import torch


class Vocabulary:
    """The most frequent words of the training texts."""

    def __init__(self, texts, size=20000):
        counts = Counter(word for text in texts for word in text.lower().split())
        self.index = {word: number for number, (word, _) in enumerate(counts.most_common(size))}

    def __len__(self):
        return len(self.index)

    def bag(self, text):
        vector = torch.zeros(len(self.index))
        for word in text.lower().split():
            if word in self.index:
                vector[self.index[word]] += 1
        return vector
