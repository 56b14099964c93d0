"""Tokenize the corpus into the cache that all jobs share, unless one of them has done it."""
import json
import pathlib

from filelock import FileLock

CACHE = pathlib.Path("cache")
TEXT = "the quick brown fox jumps over the lazy dog " * 500


def tokenize(text):
    vocabulary = {word: number for number, word in enumerate(sorted(set(text.split())))}
    return [vocabulary[word] for word in text.split()]


def cached_tokens():
    target = CACHE / "wikitext.json"
    with FileLock(CACHE / "wikitext.lock", timeout=3):
        if not target.exists():
            print("tokenizing into", target, flush=True)
            target.write_text(json.dumps(tokenize(TEXT)))
        return json.loads(target.read_text())


print(f"cache in {CACHE}", flush=True)
tokens = cached_tokens()
print(f"{len(tokens)} tokens, {len(set(tokens))} different")
