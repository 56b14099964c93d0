import os

cache = os.path.join(os.environ["HOME"], ".cache", "train")
os.makedirs(cache, exist_ok=True)
print("cache", cache)
