try:
    import networkx
except ImportError:
    networkx = None
print("graph" if networkx else "no graph", "done")
