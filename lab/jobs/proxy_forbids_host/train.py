import json
import urllib.request

VOCABULARY = "https://models.example.com/tiny-bert/vocab.json"


def download_vocabulary():
    print("downloading", VOCABULARY, flush=True)
    with urllib.request.urlopen(VOCABULARY, timeout=10) as answer:
        return json.load(answer)


def main():
    vocabulary = download_vocabulary()
    print(len(vocabulary), "words")


if __name__ == "__main__":
    main()
