import os

cache = os.path.expanduser("~/.cache/embeddings")
os.makedirs(cache, exist_ok=True)
with open(os.path.join(cache, "words.txt"), "w") as file:
    file.write("a few words")
print("cached")
