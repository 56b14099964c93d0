"""Measures of a top-k list."""

import math


def hit_rate(ranked, relevant):
    return float(any(item in relevant for item in ranked))


def gain(ranked, relevant):
    gained = sum(1 / math.log2(place + 2) for place, item in enumerate(ranked) if item in relevant)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(relevant), len(ranked))))
    return gained / ideal if ideal else 0.0


def evaluate(lists, truths, k=10):
    hits = [hit_rate(ranked[:k], truth) for ranked, truth in zip(lists, truths)]
    gains = [gain(ranked[:k], truth) for ranked, truth in zip(lists, truths)]
    return {
        f"hit@{k}": sum(hits) / len(hits),
        f"ndcg@{k}": sum(gains) / len(gains),
        "users": len(hits),
    }
