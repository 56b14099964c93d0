"""Bag of words on film reviews, read straight from the object store."""
import argparse
import csv
import urllib.request
from collections import Counter


def read_reviews(url):
    print(f"reading {url}", flush=True)
    with urllib.request.urlopen(url, timeout=10) as answer:
        return list(csv.DictReader(answer.read().decode().splitlines()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    args = parser.parse_args()
    reviews = read_reviews(args.data)
    words = {"0": Counter(), "1": Counter()}
    for review in reviews:
        words[review["label"]].update(review["text"].split())
    print(f"{len(reviews)} reviews, good: {words['1'].most_common(2)}")


if __name__ == "__main__":
    main()
