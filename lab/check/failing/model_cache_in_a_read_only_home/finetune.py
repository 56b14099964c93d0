"""Fine-tunes a small encoder for topic classification."""

import argparse
import csv

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer

MODEL = "distilbert-base-uncased"
TOPICS = ["sport", "science", "politics"]


def read_rows(path):
    with open(path, newline="") as handle:
        return [(row["text"], TOPICS.index(row["topic"])) for row in csv.DictReader(handle)]


def make_loader(rows, tokenizer, batch_size, shuffle):
    def collate(batch):
        texts, labels = zip(*batch)
        encoded = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
        encoded["labels"] = torch.tensor(labels)
        return encoded

    return DataLoader(rows, batch_size=batch_size, shuffle=shuffle, collate_fn=collate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="topics.csv")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    rows = read_rows(args.data)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=len(TOPICS))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    loader = make_loader(rows, tokenizer, args.batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    model.train()
    for epoch in range(args.epochs):
        for batch in loader:
            batch = {key: value.to(device) for key, value in batch.items()}
            loss = model(**batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    model.save_pretrained("/scratch/alice/topics")


if __name__ == "__main__":
    main()
