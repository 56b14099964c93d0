"""Embeds notes and clusters them."""

import argparse
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def embed(texts, model, tokenizer, batch_size=16):
    vectors = []
    for start in range(0, len(texts), batch_size):
        encoded = tokenizer(texts[start : start + batch_size], padding=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model(**encoded).last_hidden_state
        weights = encoded["attention_mask"].unsqueeze(-1)
        vectors.append(((hidden * weights).sum(1) / weights.sum(1)).numpy())
    return np.concatenate(vectors)


def kmeans(vectors, k, rounds=20, seed=0):
    generator = np.random.default_rng(seed)
    centres = vectors[generator.choice(len(vectors), k, replace=False)]
    for _ in range(rounds):
        distance = ((vectors[:, None] - centres[None]) ** 2).sum(-1)
        nearest = distance.argmin(1)
        for number in range(k):
            members = vectors[nearest == number]
            if len(members):
                centres[number] = members.mean(0)
    return nearest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--input", required=True)
    parser.add_argument("--clusters", type=int, default=2)
    args = parser.parse_args()
    texts = [line for line in Path(args.input).read_text().splitlines() if line.strip()]
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModel.from_pretrained(args.model).eval()
    for text, cluster in zip(texts, kmeans(embed(texts, model, tokenizer), args.clusters)):
        print(cluster, text)


if __name__ == "__main__":
    main()
