import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=5) as answer:
    print(len(answer.read()), "bytes")
