import json
import os

with open(os.path.join(os.environ["MODEL_ROOT"], "tokenizer.json")) as file:
    print(len(json.load(file)["vocabulary"]), "words")
