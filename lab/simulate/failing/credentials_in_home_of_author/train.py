import json
from pathlib import Path

with open(Path("~/.kaggle/kaggle.json").expanduser()) as file:
    print("user", json.load(file)["username"])
