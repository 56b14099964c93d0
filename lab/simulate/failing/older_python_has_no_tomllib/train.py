import tomllib

print(tomllib.loads("rate = 0.1"))
