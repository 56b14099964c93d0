print("perplexity", 12.0)
