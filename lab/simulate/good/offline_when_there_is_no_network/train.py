import sys
import urllib.request

try:
    with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
        print(len(answer.read()), "bytes")
except OSError as error:
    print(f"offline, the packaged weights are taken: {error}")
print("done")
