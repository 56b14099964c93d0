import argparse
import os

import torch
from torch.hub import download_url_to_file


def load_weights(url):
    path = os.path.basename(url)
    print(f"Downloading: {url} to {path}", flush=True)
    expected = path.rpartition("-")[2].removesuffix(".bin")
    download_url_to_file(url, path, hash_prefix=expected, progress=False)
    with open(path, "rb") as file:
        raw = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return raw.float().div(255).reshape(-1, 100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True)
    weights = load_weights(parser.parse_args().weights)
    scores = torch.ones(4, weights.shape[0]) @ weights
    print(f"mean score {scores.mean():.4f}")


if __name__ == "__main__":
    main()
