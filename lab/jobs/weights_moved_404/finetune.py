import io
import urllib.request

import numpy as np

SERVER = "http://127.0.0.1:29735/weights"


def load_encoder(version):
    url = f"{SERVER}/{version}/encoder.npy"
    print("loading", url, flush=True)
    with urllib.request.urlopen(url, timeout=10) as answer:
        return np.load(io.BytesIO(answer.read()))


def main():
    encoder = load_encoder("v1")
    x = np.random.default_rng(0).normal(size=(32, encoder.shape[0]))
    print("features", (x @ encoder).shape)


if __name__ == "__main__":
    main()
