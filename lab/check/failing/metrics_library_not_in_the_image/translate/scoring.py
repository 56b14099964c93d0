def words(ids):
    return " ".join(f"w{number}" for number in ids)


def score(predicted, references):
    """Corpus BLEU of token ids."""
    from sacrebleu import corpus_bleu

    hypotheses = [words(ids) for ids in predicted]
    truth = [[words(ids) for ids in references]]
    return corpus_bleu(hypotheses, truth).score
