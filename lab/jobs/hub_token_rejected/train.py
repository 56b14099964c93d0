"""Reads the gated configuration of a model from the hub."""
import json
import os
import urllib.request

HUB = "http://127.0.0.1:29736"


def hub_json(path):
    token = os.environ.get("HUB_TOKEN", "")
    request = urllib.request.Request(HUB + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def main():
    print("reading the configuration of acme/gated-7b", flush=True)
    config = hub_json("/acme/gated-7b/config.json")
    print("layers", config["num_hidden_layers"])


if __name__ == "__main__":
    main()
