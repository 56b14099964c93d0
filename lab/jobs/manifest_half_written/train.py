import json
import sys
from collections import Counter


def read_manifest(path):
    print("reading", path, flush=True)
    with open(path) as file:
        return json.load(file)["images"]


def main():
    images = read_manifest(sys.argv[1])
    labels = Counter(image["label"] for image in images)
    weights = {label: len(images) / (10 * count) for label, count in labels.items()}
    print(f"{len(images)} images, class weights {weights}")


if __name__ == "__main__":
    main()
